#include "src/base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <system_error>

#include "src/base/error.h"

namespace tandem {
namespace {

struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

[[noreturn]] void fail_system(const std::string& path, const char* action) {
  const int code = errno;
  fail(ErrorKind::file, "{}: cannot {}: {}", path, action, std::generic_category().message(code));
}

}  // namespace

MappedFile::MappedFile(const std::string& path) : path_(path) {
  // O_NONBLOCK: opening a pipe that nobody writes to would wait for ever.
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.fd < 0) fail_system(path, "open");
  struct stat status {};
  if (::fstat(file.fd, &status) != 0) fail_system(path, "read its size");
  if (S_ISDIR(status.st_mode)) fail(ErrorKind::file, "{}: expected a file, got a directory", path);
  if (!S_ISREG(status.st_mode)) fail(ErrorKind::file, "{}: expected a regular file, got a device or pipe", path);
  if (status.st_size == 0) fail(ErrorKind::file, "{}: the file is empty (0 bytes)", path);
  size_ = static_cast<std::size_t>(status.st_size);
  void* mapping = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.fd, 0);
  if (mapping == MAP_FAILED) fail_system(path, "map");
  data_ = static_cast<const std::byte*>(mapping);
}

MappedFile::~MappedFile() { ::munmap(const_cast<std::byte*>(data_), size_); }

void MappedFile::release(std::span<const std::byte> part) const {
  if (part.empty() || std::less{}(part.data(), data_) || std::less{}(data_ + size_, part.data() + part.size())) return;
  // Only pages that lie wholly inside the part: its neighbours may still be in use. The mapping starts on a page.
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const auto offset = static_cast<std::size_t>(part.data() - data_);
  const std::size_t begin = (offset + page - 1) / page * page;
  const std::size_t end = (offset + part.size()) / page * page;
  if (begin >= end) return;
  // A hint: when the system does not take it, the pages stay resident and nothing else changes.
  ::madvise(const_cast<std::byte*>(data_) + begin, end - begin, MADV_DONTNEED);
}

}  // namespace tandem
