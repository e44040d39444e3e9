// The shared memory of the running block: dynamic and static pieces between red zones.
#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "kernels/simt/red_zone.h"

namespace tandem::simt {

class SharedMemory {
 public:
  SharedMemory();
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  // Forgets the pieces of the block before; every piece starts as kFreshPattern.
  void start_block(std::size_t dynamic_bytes);
  std::byte* dynamic() const { return pieces_.front().data; }
  // The piece of that key, made at its first use in the block. `name` lives as long as the program.
  std::byte* piece(const void* key, const char* name, std::size_t bytes);
  // Of the static pieces made so far.
  std::size_t static_bytes() const { return static_bytes_; }

  bool intact() const;
  bool intact_nearby() const;  // of the bytes next to each piece only
  // Empty while all red zones are as they were; else which piece was overrun and where.
  std::string damage() const;

 private:
  struct Piece {
    const void* key;
    const char* name;
    std::byte* data;
    std::size_t bytes;
    RedZone before, behind;
  };
  std::byte* add(const void* key, const char* name, std::size_t bytes);

  std::unique_ptr<std::byte[]> storage_;
  std::size_t used_ = 0, static_bytes_ = 0;
  std::vector<Piece> pieces_;
};

}  // namespace tandem::simt
