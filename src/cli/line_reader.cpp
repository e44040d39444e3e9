#include "src/cli/line_reader.h"

#include <fmt/format.h>
#include <histedit.h>
#include <langinfo.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <clocale>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

#include "src/base/error.h"
#include "src/cli/terminal.h"
#include "src/text/utf8.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

// A signal may come to any thread, and between a look at its flag and the wait: so waits are short.
constexpr int kWaitMilliseconds = 100;

// Waits for a byte on stdin. False when Ctrl-C came first.
template <typename Meanwhile>
bool wait_for_input(Meanwhile&& meanwhile) {
  for (;;) {
    if (interrupted().load()) return false;
    meanwhile();
    pollfd input{STDIN_FILENO, POLLIN, 0};
    if (::poll(&input, 1, kWaitMilliseconds) > 0) return true;
  }
}

class PipedReader : public LineReader {
 public:
  Line read(const std::string&) override {
    for (;;) {
      if (const std::size_t end = held_.find('\n'); end != held_.npos) return take(end, end + 1);
      if (!wait_for_input([] {})) return {Line::Kind::interrupted, {}};
      const ssize_t count = ::read(STDIN_FILENO, part_.data(), part_.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) fail(ErrorKind::usage, "stdin: cannot be read: {}", std::strerror(errno));
      if (count == 0) return held_.empty() ? Line{Line::Kind::end, {}} : take(held_.size(), held_.size());
      held_.append(part_.data(), static_cast<std::size_t>(count));
    }
  }
  bool interactive() const override { return false; }

 private:
  Line take(std::size_t length, std::size_t used) {
    std::string text = held_.substr(0, length);
    held_.erase(0, used);
    if (text.ends_with('\r')) text.pop_back();
    return {Line::Kind::text, std::move(text)};
  }

  std::string held_;
  std::array<char, 65536> part_;
};

// Set by signals: the terminal has another size, or is ours again after Ctrl-Z.
std::atomic<bool> terminal_changed{false};
void on_terminal_change(int) { terminal_changed.store(true); }

// Escape sequences by which a terminal says what was pasted, so that its newlines do not send it.
constexpr const char* kPasteOn = "\033[?2004h";
constexpr const char* kPasteOff = "\033[?2004l";
constexpr const char* kPasteBegin = "\033[200~";
constexpr std::wstring_view kPasteEnd = L"\033[201~";

// Terminals that do not say so send all at once what was pasted: nobody types on within this time.
constexpr int kBurstMilliseconds = 20;
bool input_follows_at_once() {
  pollfd input{STDIN_FILENO, POLLIN, 0};
  return ::poll(&input, 1, kBurstMilliseconds) > 0;
}

int bytes_waiting() {
  int count = 0;
  return ::ioctl(STDIN_FILENO, FIONREAD, &count) == 0 ? count : 0;
}

// Leaves keys as they are until someone reads them. A terminal that collects lines by itself would take a Ctrl-D for an
// end of the input, and nothing would be left of it in a mode that reads keys.
void keep_keys() {
  termios mode;
  if (::tcgetattr(STDIN_FILENO, &mode) != 0) return;
  mode.c_lflag &= ~static_cast<tcflag_t>(ICANON);
  mode.c_cc[VMIN] = 1;
  mode.c_cc[VTIME] = 0;
  ::tcsetattr(STDIN_FILENO, TCSANOW, &mode);
}

class TerminalReader : public LineReader {
 public:
  TerminalReader(int output, std::string history_file) : history_file_(std::move(history_file)) {
    use_utf8();
    out_ = output == STDOUT_FILENO ? stdout : stderr;
    editor_.reset(el_init("tandem", stdin, out_, stderr));
    history_.reset(history_init());
    if (!editor_ || !history_) fail(ErrorKind::file, "the terminal's line editor cannot be set up (TERM)");
    HistEvent event;
    constexpr int kLines = 1000;
    history(history_.get(), &event, H_SETSIZE, kLines);
    history(history_.get(), &event, H_SETUNIQUE, 1);
    if (!history_file_.empty()) history(history_.get(), &event, H_LOAD, history_file_.c_str());
    EditLine* editor = editor_.get();
    el_set(editor, EL_CLIENTDATA, this);
    el_set(editor, EL_PROMPT, &TerminalReader::prompt_of);
    el_set(editor, EL_EDITOR, "emacs");
    el_set(editor, EL_HIST, history, history_.get());
    el_set(editor, EL_ADDFN, "tandem-paste", "Insert pasted text", &TerminalReader::paste);
    el_set(editor, EL_BIND, kPasteBegin, "tandem-paste", nullptr);
    el_set(editor, EL_BIND, "^R", "em-inc-search-prev", nullptr);
    el_source(editor, nullptr);  // the user's ~/.editrc
    el_set(editor, EL_GETCFN, &TerminalReader::next_character);
    std::signal(SIGWINCH, on_terminal_change);
    std::signal(SIGCONT, on_terminal_change);
  }
  ~TerminalReader() override {
    std::signal(SIGWINCH, SIG_DFL);
    std::signal(SIGCONT, SIG_DFL);
  }

  Line read(const std::string& prompt) override {
    if (std::exchange(ended_, false)) return {Line::Kind::end, {}};
    prompt_ = prompt;
    partial_.clear();
    el_resize(editor_.get());
    el_set(editor_.get(), EL_PREP_TERM, 1);  // before the prompt is there: keys pressed at once are keys already
    const bool pasting = std::exchange(pasting_, false);
    ahead_ = pasting ? 0 : bytes_waiting();
    write(kPasteOn);
    int length = 0;
    const char* typed = el_gets(editor_.get(), &length);
    keep_keys();
    write(kPasteOff);
    if (interrupted().load()) {
      write("^C\n");
      return {Line::Kind::interrupted, {}};
    }
    if (typed == nullptr) {
      write("\n");
      ended_ = pasting;  // what came before it is a message first
      return {Line::Kind::end, {}};
    }
    std::string text(typed, static_cast<std::size_t>(length));
    if (text.ends_with('\n')) text.pop_back();
    remember(text);
    pasting_ = ahead_ == 0 && input_follows_at_once();
    return {Line::Kind::text, std::move(text), pasting_};
  }
  bool interactive() const override { return true; }

 private:
  struct Free {
    void operator()(EditLine* editor) const { el_end(editor); }
    void operator()(History* history) const { history_end(history); }
  };

  static TerminalReader& of(EditLine* editor) {
    void* self = nullptr;
    el_get(editor, EL_CLIENTDATA, &self);
    return *static_cast<TerminalReader*>(self);
  }

  static char* prompt_of(EditLine* editor) { return of(editor).prompt_.data(); }

  // Lines are UTF-8 whatever the locale says of other things.
  static void use_utf8() {
    std::setlocale(LC_CTYPE, "");
    if (std::string_view(nl_langinfo(CODESET)) != "UTF-8") std::setlocale(LC_CTYPE, "C.UTF-8");
  }

  static int next_character(EditLine* editor, wchar_t* character) {
    const std::optional<wchar_t> next = of(editor).next();
    if (!next) return interrupted().load() ? -1 : 0;
    *character = *next;
    return 1;
  }

  // Nothing at the end of the input, or when Ctrl-C came.
  std::optional<wchar_t> next() {
    for (;;) {
      if (!wait_for_input([this] { redraw_after_change(); })) return std::nullopt;
      char byte = 0;
      const ssize_t count = ::read(STDIN_FILENO, &byte, 1);
      if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (count <= 0) return std::nullopt;
      if (ahead_ > 0) --ahead_;
      partial_ += byte;
      const Utf8Step step = utf8_step(partial_);
      if (step.incomplete) continue;
      partial_.clear();
      constexpr wchar_t kReplacement = 0xFFFD;
      return step.valid ? static_cast<wchar_t>(step.character) : kReplacement;
    }
  }

  void redraw_after_change() {
    if (!terminal_changed.exchange(false)) return;
    el_set(editor_.get(), EL_PREP_TERM, 0);  // the shell may have set it back
    el_set(editor_.get(), EL_PREP_TERM, 1);
    el_resize(editor_.get());
    el_wset(editor_.get(), EL_REFRESH);
  }

  // Bound to what begins a paste: takes all up to its end into the line.
  static unsigned char paste(EditLine* editor, int) {
    std::wstring text;
    wchar_t character = 0;
    while (!text.ends_with(kPasteEnd)) {
      if (el_wgetc(editor, &character) != 1) return CC_EOF;
      text += character == L'\r' ? L'\n' : character;
    }
    text.resize(text.size() - kPasteEnd.size());
    if (text.ends_with(L'\n')) text.pop_back();
    if (!text.empty() && el_winsertstr(editor, text.c_str()) != 0) return CC_ERROR;
    return CC_REFRESH;
  }

  void remember(const std::string& text) {
    if (text.find_first_not_of(" \t\n") == text.npos) return;
    HistEvent event;
    history(history_.get(), &event, H_ENTER, text.c_str());
    if (history_file_.empty()) return;
    const fs::path folder = fs::path(history_file_).parent_path();
    std::error_code ignored;
    if (fs::create_directories(folder, ignored)) fs::permissions(folder, fs::perms::owner_all, ignored);
    const std::string beside = fmt::format("{}.{}", history_file_, ::getpid());
    const mode_t before = ::umask(S_IRWXG | S_IRWXO);
    history(history_.get(), &event, H_SAVE, beside.c_str());
    ::umask(before);
    fs::rename(beside, history_file_, ignored);
  }

  void write(const char* text) {
    std::fputs(text, out_);
    std::fflush(out_);
  }

  std::string history_file_, prompt_;
  std::string partial_;  // bytes of a character that is not whole yet
  int ahead_ = 0;        // bytes still to come of those that were typed before the line was asked for
  bool pasting_ = false, ended_ = false;
  FILE* out_;
  std::unique_ptr<History, Free> history_;
  std::unique_ptr<EditLine, Free> editor_;  // goes before the history that it reads
};

}  // namespace

std::unique_ptr<LineReader> make_piped_reader() { return std::make_unique<PipedReader>(); }

std::unique_ptr<LineReader> make_terminal_reader(int output, const std::string& history_file) {
  return std::make_unique<TerminalReader>(output, history_file);
}

std::string default_history_file() {
  fs::path folder;
  if (const char* state = std::getenv("XDG_STATE_HOME"); state != nullptr && *state != 0) {
    folder = state;
  } else if (const char* home = std::getenv("HOME"); home != nullptr && *home != 0) {
    folder = fs::path(home) / ".local" / "state";
  } else {
    return {};
  }
  return (folder / "tandem" / "chat_history").string();
}

}  // namespace tandem
