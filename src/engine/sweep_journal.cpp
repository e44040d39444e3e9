#include "src/engine/sweep_journal.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "src/base/error.h"

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kIdentity = "tandem_sweep";

std::string shown(const Json& value) {
  constexpr std::size_t kMost = 60;
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  return text.size() <= kMost ? text : text.substr(0, kMost) + "...";
}

// Where two texts part, with a little of what follows.
std::string difference(const Json& theirs, const Json& ours) {
  if (!theirs.is_string() || !ours.is_string()) return fmt::format("{} there, {} here", shown(theirs), shown(ours));
  const std::string a = theirs, b = ours;
  const auto at = std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin();
  const auto line =
      static_cast<std::size_t>(at) == 0 ? std::string::npos : a.rfind('\n', static_cast<std::size_t>(at - 1));
  const std::size_t from = line == std::string::npos ? 0 : line + 1;
  const auto rest = [&](const std::string& text) {
    const std::string part = from < text.size() ? text.substr(from, text.find('\n', from) - from) : "";
    return shown(part);
  };
  return fmt::format("{} there, {} here", rest(a), rest(b));
}

}  // namespace

SweepJournal::SweepJournal(std::string path, Open how) : path_(std::move(path)) {
  file_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (file_ < 0) fail(ErrorKind::usage, "{}: cannot be written: {}", path_, std::strerror(errno));
  try {
    if (::flock(file_, LOCK_EX | LOCK_NB) != 0) fail(ErrorKind::usage, "{}: another sweep is writing to it", path_);
    read();
    if (how == Open::fresh && !identity_.is_null()) {
      fail(ErrorKind::usage, "{}: a sweep was begun there; --resume goes on with it, another --out begins anew", path_);
    }
  } catch (...) {
    ::close(file_);
    throw;
  }
}

SweepJournal::~SweepJournal() { ::close(file_); }

void SweepJournal::read() {
  std::string content;
  std::array<char, 65536> part;
  for (ssize_t count = 0; (count = ::read(file_, part.data(), part.size())) != 0;) {
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail(ErrorKind::usage, "{}: cannot be read: {}", path_, std::strerror(errno));
    content.append(part.data(), static_cast<std::size_t>(count));
  }
  std::size_t begin = 0;
  for (int number = 1; begin < content.size(); ++number) {
    const std::size_t end = content.find('\n', begin);
    if (end == std::string::npos) break;
    try {
      Json line = Json::parse(std::string_view(content).substr(begin, end - begin));
      if (number == 1) {
        identity_ = line.at(kIdentity);
        if (!identity_.is_object()) fail(ErrorKind::file, "expected an object of what was swept");
      } else {
        pairs_.push_back(pair_from_json(line));
      }
    } catch (const std::exception& error) {
      fail(ErrorKind::file, "{}:{}: expected a line that a sweep wrote: {}", path_, number, error.what());
    }
    begin = end + 1;
  }
  // What a kill left of a line would otherwise stand before the next one.
  if (begin < content.size() && ::ftruncate(file_, static_cast<off_t>(begin)) != 0) {
    fail(ErrorKind::file, "{}: cannot be written: {}", path_, std::strerror(errno));
  }
}

void SweepJournal::require_identity(const Json& identity) {
  if (identity_.is_null()) {
    write_line({{kIdentity, identity}});
    identity_ = identity;
    return;
  }
  for (const auto& [key, ours] : identity.items()) {
    const Json theirs = identity_.value(key, Json());
    if (theirs != ours) {
      fail(ErrorKind::usage, "{}: holds another sweep, which this one cannot go on with: {}: {}", path_, key,
           difference(theirs, ours));
    }
  }
}

void SweepJournal::append(const SweepPair& pair) {
  write_line(to_json(pair));
  pairs_.push_back(pair);
}

int SweepJournal::starts() const {
  int starts = 0;
  for (const SweepPair& pair : pairs_) starts = std::max(starts, pair.start + 1);
  return starts;
}

void SweepJournal::write_line(const Json& json) {
  const std::string line = json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  const ssize_t written = ::write(file_, line.data(), line.size());
  if (written == static_cast<ssize_t>(line.size())) return;
  const int error = written < 0 ? errno : ENOSPC;
  fail(ErrorKind::file, "{}: cannot be written: {}", path_, std::strerror(error));
}

}  // namespace tandem
