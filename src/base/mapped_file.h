// A read-only memory-mapped file.
#pragma once
#include <cstddef>
#include <span>
#include <string>

namespace tandem {

class MappedFile {
 public:
  // Maps the whole file. Throws Error(file) naming the path and the system's reason; directories and empty files too.
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::string& path() const { return path_; }

  // Tells the system that this part will not be read again soon, so its pages need not stay resident. Content stays
  // readable.
  void release(std::span<const std::byte> part) const;

 private:
  std::string path_;
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace tandem
