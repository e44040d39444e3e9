// A file that takes the place of another whole or not at all: written beside it, brought to disk, renamed.
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace tandem {

class AtomicFile {
 public:
  // Begins a new file beside `path`, which only the user can read. Nothing is at `path` that was not there before.
  // Throws Error(file) naming the path and the system's reason, as every member does.
  explicit AtomicFile(std::string path);
  ~AtomicFile();  // removes what was not committed
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  // Puts it at `path`, once its bytes are on the disk. Nothing may be written afterwards.
  void commit();

  const std::string& path() const { return path_; }

 private:
  [[noreturn]] void refuse() const;  // with errno's reason

  std::string path_, beside_;
  int file_ = -1;
};

}  // namespace tandem
