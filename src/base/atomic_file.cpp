#include "src/base/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "src/base/error.h"

namespace tandem {
namespace {

// A rename is on the disk once its folder is. Some file systems cannot do that for folders, which loses nothing.
void synchronise_folder(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  const int descriptor = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  ::fsync(descriptor);
  ::close(descriptor);
}

}  // namespace

AtomicFile::AtomicFile(std::string path) : path_(std::move(path)), beside_(path_ + ".XXXXXX") {
  std::error_code ignored;
  if (std::filesystem::is_directory(path_, ignored)) {
    errno = EISDIR;
    refuse();
  }
  file_ = ::mkostemp(beside_.data(), O_CLOEXEC);  // mode 0600
  if (file_ < 0) refuse();
}

AtomicFile::~AtomicFile() {
  if (file_ < 0) return;
  ::close(file_);
  ::unlink(beside_.c_str());
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) refuse();
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void AtomicFile::commit() {
  if (::fsync(file_) != 0) refuse();
  if (std::rename(beside_.c_str(), path_.c_str()) != 0) refuse();
  ::close(std::exchange(file_, -1));
  synchronise_folder(path_);
}

void AtomicFile::refuse() const { fail(ErrorKind::file, "{}: cannot be written: {}", path_, std::strerror(errno)); }

}  // namespace tandem
