// Runs the blocks of a launch one after the other on this OS thread, each CUDA thread on a fiber that gives way at
// barriers and warp primitives only.
#pragma once
#include <vector_types.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "kernels/simt/fault.h"
#include "kernels/simt/fiber.h"
#include "kernels/simt/heap.h"
#include "kernels/simt/place.h"
#include "kernels/simt/shared_memory.h"
#include "kernels/simt/warp.h"

namespace tandem::simt {

// In which order blocks, warps and lanes get their turns. `forward` and `reverse` let each warp run to the next barrier
// of its block before another starts, so that warps are as far apart as barriers allow; `shuffled` mixes all of them. A
// kernel whose results differ between the orders lacks a barrier.
enum class Order : std::uint8_t { forward, reverse, shuffled };

// What the built-in variables of the running kernel thread read.
struct Here {
  uint3 thread_index{}, block_index{};
  dim3 block_size, grid_size;
};
inline constinit thread_local Here here{};

inline constexpr int kLanes = 32;
inline constexpr unsigned kMostBlockThreads = 1024;
// Of an sm_80 device, the smallest that is built for.
inline constexpr std::size_t kMostSharedBytes = 163 << 10;
inline constexpr std::size_t kMostStaticSharedBytes = 48 << 10;

// One argument of a launch as it lies in memory.
struct Argument {
  const void* data;
  std::size_t bytes;
  bool is_pointer;
};

struct Launch {
  const void* kernel;  // its address
  dim3 grid, block;
  std::size_t shared_bytes;
  std::span<const Argument> arguments;
  void (*call)(const void*);  // calls the kernel; given `self`
  const void* self;
};

class Machine {
 public:
  // Throws Fault(launch) for what no device takes.
  void check(const Launch& launch) const;
  // Throws Fault for what the kernel does wrong; the block is then left unfinished.
  void run(const Launch& launch);

  void set_order(Order order, std::uint64_t seed) {
    order_ = order;
    seed_ = seed;
  }
  Order order() const { return order_; }
  std::uint64_t seed() const { return seed_; }

  // For kernel threads only.
  void wait_for_block(Place where);
  // Returns what the primitive gives to this lane, once all lanes of its mask have called it.
  std::uint64_t wait_for_warp(const WarpCall& call);
  std::byte* dynamic_shared() { return shared_.dynamic(); }
  std::byte* static_shared(const void* key, const char* name, std::size_t bytes);
  unsigned lane() const { return static_cast<unsigned>(running_) % kLanes; }

  // "kernel: block (x, y, z)" of the running block; the thread where there is one.
  std::string place() const;

 private:
  enum class State : std::uint8_t { ready, at_block, at_warp, done };
  struct Thread {
    Fiber fiber;
    uint3 index{};
    State state = State::done;
    Place where;  // of its barrier
    WarpCall call;
  };
  struct Unwind {};  // thrown in the threads of a block that is given up

  void prepare_threads(const Launch& launch);
  void run_block();
  void run_warps();
  void run_warps_shuffled();
  bool step_and_release(int warp);
  void step(int warp);
  bool release_warp(int warp);
  bool release_block();
  std::span<Thread* const> lanes_of(int warp) const;
  void run_slice(int thread);
  [[noreturn]] void report_damage(const std::string& place);
  void give_up();
  bool all_done() const;
  std::string describe_wait() const;
  [[noreturn]] void report_stuck() const;
  static void thread_entry(void* of);

  Order order_ = Order::forward;
  std::uint64_t seed_ = 1;
  std::mt19937_64 random_;

  std::vector<std::unique_ptr<Thread>> made_;  // kept from launch to launch
  std::vector<Thread*> threads_;               // of the block
  std::vector<int> active_;                    // warps that may go on
  const Launch* launch_ = nullptr;
  SharedMemory shared_;
  std::vector<Heap::Range> watched_;  // device memory that the arguments point to
  int running_ = -1;                  // thread, -1 between slices
  bool giving_up_ = false;
  std::exception_ptr fault_;
};

// The one of this OS thread.
Machine& machine();

// Runs `body` under an order, then restores the one before.
template <typename Body>
void with_order(Order order, std::uint64_t seed, Body&& body) {
  struct Restore {
    Order order = machine().order();
    std::uint64_t seed = machine().seed();
    ~Restore() { machine().set_order(order, seed); }
  } const restore;
  machine().set_order(order, seed);
  body();
}

}  // namespace tandem::simt
