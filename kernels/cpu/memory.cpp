#include "kernels/cpu/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "src/base/error.h"

namespace tandem::cpu {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kArenaStep = std::size_t{64} << 20;

std::size_t round_up(std::size_t n, std::size_t step) { return (n + step - 1) / step * step; }

}  // namespace

Pages::Pages(std::size_t bytes) {
  const std::size_t usable = round_up(std::max<std::size_t>(bytes, 1), bytes < kHugePage ? 4096 : kHugePage);
  mapped_bytes_ = usable + kHugePage;  // the start is moved up to a huge page; untouched pages cost nothing
  mapping_ = mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping_ == MAP_FAILED) {
    fail(ErrorKind::model, "cpu backend: expected {} bytes of memory, got: {}", bytes, std::strerror(errno));
  }
  data_ = reinterpret_cast<std::byte*>(round_up(reinterpret_cast<std::uintptr_t>(mapping_), kHugePage));
  if (bytes >= kHugePage) madvise(data_, usable, MADV_HUGEPAGE);  // a wish; smaller pages only cost speed
}

Pages::~Pages() { munmap(mapping_, mapped_bytes_); }

Piece Arena::take(std::size_t bytes) {
  bytes = round_up(bytes, 256);
  if (!pages_ || size_ - used_ < bytes) {
    const std::size_t size = std::max(kArenaStep, round_up(bytes, kHugePage));
    auto fresh = std::make_shared<Pages>(size);
    if (pages_ && size - bytes <= size_ - used_) {  // the old pages have more left: keep cutting from those
      std::uint8_t* data = reinterpret_cast<std::uint8_t*>(fresh->data());
      return {std::move(fresh), data};
    }
    pages_ = std::move(fresh);
    used_ = 0;
    size_ = size;
  }
  Piece piece{pages_, reinterpret_cast<std::uint8_t*>(pages_->data()) + used_};
  used_ += bytes;
  return piece;
}

}  // namespace tandem::cpu
