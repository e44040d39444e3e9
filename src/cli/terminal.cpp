#include "src/cli/terminal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "src/base/error.h"
#include "src/base/stopwatch.h"

namespace tandem {
namespace {

// Written by signal handlers, so they cannot live in an object.
std::atomic<bool> interrupt_flag{false};
std::atomic<bool> terminate_flag{false};

void on_interrupt(int signal) {
  interrupt_flag.store(true);
  std::signal(signal, SIG_DFL);
}

void on_repeated_interrupt(int) { interrupt_flag.store(true); }

void on_terminate(int signal) {
  terminate_flag.store(true);
  on_interrupt(signal);
}

// 0, or the errno of the write that failed.
int write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

std::string read_all(int descriptor, const std::string& name) {
  std::string content;
  std::array<char, 65536> part;
  for (;;) {
    const ssize_t count = ::read(descriptor, part.data(), part.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail(ErrorKind::usage, "{}: cannot be read: {}", name, std::strerror(errno));
    if (count == 0) return content;
    content.append(part.data(), static_cast<std::size_t>(count));
  }
}

struct Closer {
  int file;
  ~Closer() { ::close(file); }
};

}  // namespace

const std::atomic<bool>& interrupted() {
  static const bool installed = [] {
    std::signal(SIGINT, on_interrupt);
    std::signal(SIGTERM, on_interrupt);
    return true;
  }();
  (void)installed;
  return interrupt_flag;
}

void repeat_interrupts() {
  interrupted();  // whose handlers these take over from
  std::signal(SIGINT, on_repeated_interrupt);
  std::signal(SIGTERM, on_terminate);
  std::signal(SIGHUP, on_terminate);
}

bool take_interrupt() { return interrupt_flag.exchange(false); }

bool terminated() { return terminate_flag.load(); }

void request_stop() { interrupt_flag.store(true); }

bool is_terminal(int descriptor) { return isatty(descriptor) == 1; }

bool write_stdout(std::string_view bytes) {
  const int error = write_all(STDOUT_FILENO, bytes);
  if (error != 0 && error != EPIPE) fail(ErrorKind::file, "stdout: cannot be written: {}", std::strerror(error));
  return error == 0;
}

std::string json_text(const nlohmann::ordered_json& json, bool indented) {
  return json.dump(indented ? 2 : -1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

bool write_json(const nlohmann::ordered_json& json, bool indented) { return write_stdout(json_text(json, indented)); }

void say(std::string_view text) { write_all(STDERR_FILENO, text); }

void warn(std::string_view sentence) {
  if (!sentence.empty()) say(fmt::format("tandem: warning: {}\n", sentence));
}

std::string read_all_stdin() { return read_all(STDIN_FILENO, "stdin"); }

std::string read_file(const std::string& path) {
  if (path == "-") return read_all_stdin();
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) fail(ErrorKind::usage, "{}: cannot be read: {}", path, std::strerror(errno));
  const Closer closer{file};
  return read_all(file, path);
}

ProgressBar::ProgressBar(std::string_view label) : label_(label), start_seconds_(now_seconds()) {}

ProgressBar::~ProgressBar() { wipe(); }

void ProgressBar::wipe() {
  if (std::exchange(shown_, false)) say("\r\033[K");
}

void ProgressBar::show(std::size_t done, std::size_t total) {
  const double elapsed = now_seconds() - start_seconds_;
  if (!is_terminal(2) || total == 0 || (!shown_ && elapsed < 1)) return;
  shown_ = true;
  constexpr std::size_t kWidth = 30;
  const std::size_t filled = kWidth * done / total;
  const double left = done > 0 ? elapsed * static_cast<double>(total - done) / static_cast<double>(done) : 0;
  say(fmt::format("\r{} [{}{}] {}/{}, {:.0f} s left \033[K", label_, std::string(filled, '#'),
                  std::string(kWidth - filled, '.'), done, total, left));
}

}  // namespace tandem
