// The emulated device's memory: host memory between red zones, every allocation known.
#pragma once
#include <cstddef>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "kernels/simt/red_zone.h"

namespace tandem::simt {

// Thread-safe.
class Heap {
 public:
  struct Range {
    std::byte* data;
    std::size_t bytes;
    RedZone before, behind;

    bool intact() const { return before.intact() && behind.intact(); }
    bool intact_nearby() const { return before.intact_at_end() && behind.intact_at_start(); }
    // Empty while both zones are as they were; else the place of the stray write. Restores the zones.
    std::string damage() const;
  };
  static constexpr std::size_t kAlignment = 256;

  // Memory filled with kFreshPattern; null when the device has less than `bytes` free.
  std::byte* allocate(std::size_t bytes);
  void release(std::byte* data);

  // The allocation that holds `address`, or ends there; nullopt for host memory.
  std::optional<Range> find(const void* address) const;
  // Whether all of `bytes` lie in one allocation.
  bool holds(const void* address, std::size_t bytes) const;
  // The damage of any allocation.
  std::string damage() const;

  std::size_t total_bytes() const;
  std::size_t free_bytes() const;
  // For tests of what happens on a small device. Returns the size before.
  std::size_t set_total_bytes(std::size_t bytes);

 private:
  mutable std::mutex mutex_;
  std::map<const std::byte*, Range> ranges_;  // by first byte
  std::size_t used_ = 0, total_ = std::size_t{16} << 30;
};

// The one of the process: what stands for the device's memory.
Heap& heap();

}  // namespace tandem::simt
