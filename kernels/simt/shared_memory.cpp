#include "kernels/simt/shared_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>

namespace tandem::simt {
namespace {

// The most that a device gives, and room for zones and alignment of many pieces.
constexpr std::size_t kStorageBytes = 512 << 10;
constexpr std::size_t kAlignment = 64;

constexpr std::size_t rounded_up(std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

SharedMemory::SharedMemory() : storage_(new std::byte[kStorageBytes]) {}

SharedMemory::~SharedMemory() { unpoison(storage_.get(), kStorageBytes); }

void SharedMemory::start_block(std::size_t dynamic_bytes) {
  unpoison(storage_.get(), used_);
  pieces_.clear();
  used_ = static_bytes_ = 0;
  add(nullptr, "dynamic shared memory", dynamic_bytes);
}

std::byte* SharedMemory::piece(const void* key, const char* name, std::size_t bytes) {
  for (const Piece& piece : pieces_) {
    if (piece.key == key) return piece.data;
  }
  static_bytes_ += bytes;
  return add(key, name, bytes);
}

std::byte* SharedMemory::add(const void* key, const char* name, std::size_t bytes) {
  auto* base = storage_.get();
  base += rounded_up(reinterpret_cast<std::uintptr_t>(base)) - reinterpret_cast<std::uintptr_t>(base) + used_;
  const std::size_t taken = rounded_up(2 * RedZone::kBytes + bytes);
  if (used_ + taken + kAlignment > kStorageBytes) throw std::bad_alloc();
  used_ += taken;
  std::byte* data = base + RedZone::kBytes;
  std::memset(data, kFreshPattern, bytes);
  pieces_.push_back({key, name, data, bytes, RedZone(base), RedZone(data + bytes)});
  return data;
}

bool SharedMemory::intact() const {
  return std::all_of(pieces_.begin(), pieces_.end(),
                     [](const Piece& piece) { return piece.before.intact() && piece.behind.intact(); });
}

bool SharedMemory::intact_nearby() const {
  return std::all_of(pieces_.begin(), pieces_.end(),
                     [](const Piece& piece) { return piece.before.intact_at_end() && piece.behind.intact_at_start(); });
}

std::string SharedMemory::damage() const {
  for (const Piece& piece : pieces_) {
    if (!piece.behind.intact()) {
      return fmt::format("a write to byte {} of {} ({} bytes)", piece.bytes + piece.behind.first_changed(), piece.name,
                         piece.bytes);
    }
    if (!piece.before.intact()) {
      const std::size_t changed = piece.before.first_changed();
      return fmt::format("a write {} bytes in front of {} ({} bytes)", RedZone::kBytes - changed, piece.name,
                         piece.bytes);
    }
  }
  return {};
}

}  // namespace tandem::simt
