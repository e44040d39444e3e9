// Memory for weights and caches: huge pages where the system grants them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>

#include "kernels/backend.h"

namespace tandem::cpu {

// Zeroed anonymous pages aligned to 2 MB, asked for as huge pages. Throws Error(model) when the system has none left.
class Pages final : public Buffer {
 public:
  explicit Pages(std::size_t bytes);
  ~Pages() override;
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  std::byte* data() override { return data_; }

 private:
  void* mapping_ = nullptr;
  std::size_t mapped_bytes_ = 0;
  std::byte* data_ = nullptr;
};

// A piece of Pages that keeps them alive.
struct Piece {
  std::shared_ptr<Pages> pages;
  std::uint8_t* data = nullptr;
};

// Cuts pieces from large Pages one after the other, so that small weights share huge pages and lie in the order of
// loading.
class Arena {
 public:
  // `bytes` of zeroed memory aligned to 64.
  Piece take(std::size_t bytes);

 private:
  std::shared_ptr<Pages> pages_;
  std::size_t used_ = 0, size_ = 0;
};

}  // namespace tandem::cpu
