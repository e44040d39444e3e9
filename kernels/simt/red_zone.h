// Bytes of a known pattern around memory that kernels write: a stray write shows as a changed byte.
#pragma once
#include <cstddef>
#include <cstring>

#include "kernels/simt/sanitizer.h"

namespace tandem::simt {

inline constexpr int kZonePattern = 0xA7;
// What fresh memory holds: NaN as a float, half or double, -1 as an integer, so that reading before writing shows.
inline constexpr int kFreshPattern = 0xFF;

// AddressSanitizer stops at the first access to a zone, reads included; elsewhere intact() tells of writes afterwards.
class RedZone {
 public:
  static constexpr std::size_t kBytes = 64;

  explicit RedZone(std::byte* data) : data_(data) {
    std::memset(data_, kZonePattern, kBytes);
    poison(data_, kBytes);
  }
  void remove() const { unpoison(data_, kBytes); }

  bool intact() const { return intact_bytes<kBytes>(data_); }
  // Of the 16 bytes that a stray write most often hits: the first of a zone behind, the last of one in front.
  bool intact_at_start() const { return intact_bytes<16>(data_); }
  bool intact_at_end() const { return intact_bytes<16>(data_ + kBytes - 16); }
  // Offset of the first changed byte; only when not intact().
  std::size_t first_changed() const {
    std::size_t i = 0;
    while (i < kBytes && data_[i] == std::byte{kZonePattern}) ++i;
    return i;
  }
  // After a report, so that the next one is news.
  void restore() const { std::memset(data_, kZonePattern, kBytes); }

 private:
  template <std::size_t kCount>
  static bool intact_bytes(const std::byte* bytes) {
    if constexpr (kAddressSanitizer) return true;
    constexpr auto kWord = 0x0101010101010101ull * kZonePattern;
    unsigned long long words[kCount / 8], changed = 0;
    std::memcpy(words, bytes, kCount);
    for (const unsigned long long word : words) changed |= word ^ kWord;
    return changed == 0;
  }

  std::byte* data_;
};

}  // namespace tandem::simt
