// A stack of its own that runs a function in slices: one CUDA thread.
#pragma once
#include <cstddef>

namespace tandem::simt {

// Made once and started many times. All calls come from one OS thread.
class Fiber {
 public:
  Fiber();
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // The next resume() enters `entry(argument)`, which must not throw. The fiber must not be suspended.
  void start(void (*entry)(void*), void* argument);
  // To be called when an exception has ended the entry's calls: AddressSanitizer still knows of their frames.
  void forget_frames();
  // Runs the fiber until it suspends or its entry returns.
  void resume();
  // Called on the fiber: back to the caller of resume().
  void suspend();

 private:
  static void enter(void* from, Fiber* fiber);
  struct Jump;

  std::byte* stack_;  // lowest usable byte; below it lies a page that faults
  std::byte* top_;    // where the entry's frame begins
  void* context_ = nullptr;
  void* caller_ = nullptr;
  void (*entry_)(void*) = nullptr;
  void* argument_ = nullptr;
  // What AddressSanitizer must be told of each switch.
  const void* caller_stack_ = nullptr;
  std::size_t caller_stack_bytes_ = 0;
  void* shadow_ = nullptr;
};

}  // namespace tandem::simt
