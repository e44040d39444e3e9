#include "kernels/simt/heap.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace tandem::simt {

std::string Heap::Range::damage() const {
  std::string text;
  if (!behind.intact()) {
    text = fmt::format("a write to byte {} of a device allocation of {} bytes", bytes + behind.first_changed(), bytes);
  } else if (!before.intact()) {
    text = fmt::format("a write {} bytes in front of a device allocation of {} bytes",
                       RedZone::kBytes - before.first_changed(), bytes);
  }
  if (!text.empty()) {
    before.restore();
    behind.restore();
  }
  return text;
}

std::byte* Heap::allocate(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  if (bytes > total_ - used_) return nullptr;
  const std::size_t behind = (bytes + RedZone::kBytes + kAlignment - 1) / kAlignment * kAlignment;
  auto* base = static_cast<std::byte*>(std::aligned_alloc(kAlignment, kAlignment + behind));
  if (base == nullptr) return nullptr;
  std::byte* data = base + kAlignment;
  std::memset(data, kFreshPattern, bytes);
  ranges_.emplace(data, Range{data, bytes, RedZone(data - RedZone::kBytes), RedZone(data + bytes)});
  used_ += bytes;
  return data;
}

void Heap::release(std::byte* data) {
  const std::lock_guard lock(mutex_);
  const auto found = ranges_.find(data);
  if (found == ranges_.end()) return;
  used_ -= found->second.bytes;
  found->second.before.remove();
  found->second.behind.remove();
  ranges_.erase(found);
  std::free(data - kAlignment);
}

std::optional<Heap::Range> Heap::find(const void* address) const {
  const std::lock_guard lock(mutex_);
  const auto* byte = static_cast<const std::byte*>(address);
  auto above = ranges_.upper_bound(byte);
  if (above == ranges_.begin()) return std::nullopt;
  const Range& range = std::prev(above)->second;
  if (byte > range.data + range.bytes) return std::nullopt;
  return range;
}

bool Heap::holds(const void* address, std::size_t bytes) const {
  const auto range = find(address);
  return range && static_cast<const std::byte*>(address) + bytes <= range->data + range->bytes;
}

std::string Heap::damage() const {
  const std::lock_guard lock(mutex_);
  for (const auto& [data, range] : ranges_) {
    if (std::string text = range.damage(); !text.empty()) return text;
  }
  return {};
}

std::size_t Heap::total_bytes() const {
  const std::lock_guard lock(mutex_);
  return total_;
}

std::size_t Heap::free_bytes() const {
  const std::lock_guard lock(mutex_);
  return total_ - used_;
}

std::size_t Heap::set_total_bytes(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  return std::exchange(total_, std::max(bytes, used_));
}

// Never destroyed: static objects may free their memory after any other.
Heap& heap() {
  static Heap& instance = *new Heap;
  return instance;
}

}  // namespace tandem::simt
