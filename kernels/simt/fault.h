// What the emulation reports about a kernel.
#pragma once
#include <stdexcept>
#include <string>

namespace tandem::simt {

enum class FaultKind {
  launch,         // a grid, block or shared memory size that no device takes, or a pointer that is not device memory
  divergence,     // a barrier that not all threads reach, or reach at different places
  mask,           // lanes of one warp primitive that name different masks, or a lane that reads one outside the mask
  out_of_bounds,  // a write beyond shared or device memory
  other           // an exception thrown in kernel code
};

// The message names the kernel, the block, the thread or threads, and the place in the source where they wait.
class Fault : public std::runtime_error {
 public:
  Fault(FaultKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  FaultKind kind() const { return kind_; }

 private:
  FaultKind kind_;
};

}  // namespace tandem::simt
