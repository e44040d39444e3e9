#include "kernels/simt/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "kernels/simt/launches.h"

namespace tandem::simt {
namespace {

std::string text_of(const uint3& index) { return fmt::format("({}, {}, {})", index.x, index.y, index.z); }
std::string text_of(const dim3& size) { return fmt::format("{} x {} x {}", size.x, size.y, size.z); }

std::size_t count_of(const dim3& size) { return std::size_t{size.x} * size.y * size.z; }

uint3 index_in(const dim3& size, std::size_t i) {
  return {static_cast<unsigned>(i % size.x), static_cast<unsigned>(i / size.x % size.y),
          static_cast<unsigned>(i / size.x / size.y)};
}

std::string text_of(const Place& where) {
  const std::string_view file = where.file;
  return fmt::format("{}:{}", file.substr(file.find_last_of('/') + 1), where.line);
}

}  // namespace

Machine& machine() {
  static thread_local Machine instance;
  return instance;
}

void Machine::run(const Launch& launch) {
  if (launch_ != nullptr) throw Fault(FaultKind::launch, place() + ": a kernel thread launches another kernel");
  launch_ = &launch;
  struct Finished {
    const Launch*& launch;
    ~Finished() { launch = nullptr; }
  } const finished{launch_};
  record_launch(launch.kernel);
  here.grid_size = launch.grid;
  here.block_size = launch.block;
  prepare_threads(launch);

  std::vector<std::size_t> blocks(count_of(launch.grid));
  std::iota(blocks.begin(), blocks.end(), std::size_t{0});
  random_.seed(seed_);
  if (order_ == Order::reverse) std::reverse(blocks.begin(), blocks.end());
  if (order_ == Order::shuffled) std::shuffle(blocks.begin(), blocks.end(), random_);
  for (const std::size_t block : blocks) {
    here.block_index = index_in(launch.grid, block);
    run_block();
  }
  if (const std::string damage = heap().damage(); !damage.empty()) {
    throw Fault(FaultKind::out_of_bounds, fmt::format("{}: {}", function_name(launch.kernel), damage));
  }
}

void Machine::check(const Launch& launch) const {
  const auto refuse = [&](const std::string& what) {
    throw Fault(FaultKind::launch, fmt::format("{}: {}", function_name(launch.kernel), what));
  };
  const std::size_t threads = count_of(launch.block);
  if (threads == 0 || threads > kMostBlockThreads || launch.block.z > 64) {
    refuse(fmt::format("a block has 1 .. {} threads, z at most 64; got {}", kMostBlockThreads, text_of(launch.block)));
  }
  if (count_of(launch.grid) == 0 || launch.grid.x > 0x7fffffffu || launch.grid.y > 65535 || launch.grid.z > 65535) {
    refuse(fmt::format("a grid has 1 .. 2147483647 x 65535 x 65535 blocks; got {}", text_of(launch.grid)));
  }
  if (launch.shared_bytes > kMostSharedBytes) {
    refuse(fmt::format("shared memory: at most {} bytes, got {}", kMostSharedBytes, launch.shared_bytes));
  }
  for (std::size_t i = 0; i < launch.arguments.size(); ++i) {
    const Argument& argument = launch.arguments[i];
    if (!argument.is_pointer) continue;
    const void* pointer = *static_cast<void* const*>(argument.data);
    if (pointer != nullptr && !heap().find(pointer)) {
      refuse(fmt::format("argument {} points to host memory; a kernel reads device memory only", i + 1));
    }
  }
}

void Machine::prepare_threads(const Launch& launch) {
  const std::size_t count = count_of(launch.block);
  while (made_.size() < count) made_.push_back(std::make_unique<Thread>());
  threads_.clear();
  for (std::size_t i = 0; i < count; ++i) {
    threads_.push_back(made_[i].get());
    threads_[i]->index = index_in(launch.block, i);
  }
  // Whatever looks like a pointer to device memory is taken for one: arguments may be structures.
  watched_.clear();
  for (const Argument& argument : launch.arguments) {
    for (std::size_t at = 0; at + sizeof(void*) <= argument.bytes; at += sizeof(void*)) {
      const void* pointer;
      std::memcpy(&pointer, static_cast<const std::byte*>(argument.data) + at, sizeof pointer);
      const auto range = heap().find(pointer);
      if (!range) continue;
      const auto same = [&](const Heap::Range& other) { return other.data == range->data; };
      if (std::none_of(watched_.begin(), watched_.end(), same)) watched_.push_back(*range);
    }
  }
}

void Machine::thread_entry(void* of) {
  Machine& machine = *static_cast<Machine*>(of);
  try {
    if (!machine.giving_up_) machine.launch_->call(machine.launch_->self);
  } catch (const Unwind&) {
  } catch (const Fault&) {
    machine.fault_ = std::current_exception();
  } catch (const std::exception& error) {
    machine.fault_ = std::make_exception_ptr(
        Fault(FaultKind::other, fmt::format("{}: an exception in kernel code: {}", machine.place(), error.what())));
  }
  machine.threads_[machine.running_]->state = State::done;
}

void Machine::run_block() {
  shared_.start_block(launch_->shared_bytes);
  fault_ = nullptr;
  giving_up_ = false;
  for (Thread* thread : threads_) {
    thread->fiber.start(thread_entry, this);
    thread->state = State::ready;
  }
  try {
    while (!all_done()) {
      order_ == Order::shuffled ? run_warps_shuffled() : run_warps();
      if (!release_block() && !all_done()) report_stuck();
    }
  } catch (...) {
    fault_ = std::current_exception();
  }
  if (fault_ == nullptr) return;
  const std::exception_ptr fault = fault_;
  give_up();
  std::rethrow_exception(fault);
}

// Destructors of what the threads hold must run before their stacks are used again.
void Machine::give_up() {
  giving_up_ = true;
  for (std::size_t i = 0; i < threads_.size(); ++i) {
    running_ = static_cast<int>(i);
    if (threads_[i]->state != State::done) threads_[i]->fiber.resume();
    threads_[i]->fiber.forget_frames();
  }
  running_ = -1;
}

bool Machine::all_done() const {
  return std::all_of(threads_.begin(), threads_.end(), [](const Thread* t) { return t->state == State::done; });
}

std::span<Machine::Thread* const> Machine::lanes_of(int warp) const {
  const std::size_t first = static_cast<std::size_t>(warp) * kLanes;
  return std::span(threads_).subspan(first, std::min<std::size_t>(kLanes, threads_.size() - first));
}

// Each warp as far as it can go without the others.
void Machine::run_warps() {
  const int warps = static_cast<int>((threads_.size() + kLanes - 1) / kLanes);
  for (int i = 0; i < warps; ++i) {
    const int warp = order_ == Order::reverse ? warps - 1 - i : i;
    while (step_and_release(warp)) {
    }
  }
}

void Machine::run_warps_shuffled() {
  active_.resize((threads_.size() + kLanes - 1) / kLanes);
  std::iota(active_.begin(), active_.end(), 0);
  while (!active_.empty()) {
    std::swap(active_[random_() % active_.size()], active_.back());
    if (!step_and_release(active_.back())) active_.pop_back();
  }
}

// Lets every lane of the warp that may run go on to its next barrier. Returns whether some may go on once more.
bool Machine::step_and_release(int warp) {
  step(warp);
  return release_warp(warp);
}

void Machine::step(int warp) {
  const int first = warp * kLanes, count = static_cast<int>(lanes_of(warp).size());
  std::array<std::uint8_t, kLanes> turns;
  std::iota(turns.begin(), turns.end(), std::uint8_t{0});
  if (order_ == Order::reverse) std::reverse(turns.begin(), turns.begin() + count);
  if (order_ == Order::shuffled) std::shuffle(turns.begin(), turns.begin() + count, random_);
  for (int turn = 0; turn < count; ++turn) {
    const int thread = first + turns[turn];
    if (threads_[thread]->state == State::ready) run_slice(thread);
  }
  // The whole zones, for writes further away: these name the warp only.
  const auto intact = [](const Heap::Range& range) { return range.intact(); };
  if (!shared_.intact() || !std::all_of(watched_.begin(), watched_.end(), intact)) {
    report_damage(fmt::format("{}, threads {}..{}", place(), first, first + count - 1));
  }
}

void Machine::run_slice(int thread) {
  running_ = thread;
  here.thread_index = threads_[thread]->index;
  threads_[thread]->fiber.resume();
  const auto nearby = [](const Heap::Range& range) { return range.intact_nearby(); };
  if (!shared_.intact_nearby() || !std::all_of(watched_.begin(), watched_.end(), nearby)) report_damage(place());
  running_ = -1;
  if (fault_ != nullptr) std::rethrow_exception(fault_);
}

void Machine::report_damage(const std::string& place) {
  std::string damage = shared_.damage();
  for (std::size_t i = 0; i < watched_.size() && damage.empty(); ++i) damage = watched_[i].damage();
  throw Fault(FaultKind::out_of_bounds, fmt::format("{}: {}", place, damage));
}

// Threads that have ended count as arrived, as on a device.
bool Machine::release_warp(int warp) {
  const auto lanes = lanes_of(warp);
  std::array<WarpCall*, kLanes> calls{};
  unsigned alive = 0, waiting = 0;
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    calls[i] = &lanes[i]->call;
    alive |= unsigned{lanes[i]->state != State::done} << i;
    waiting |= unsigned{lanes[i]->state == State::at_warp} << i;
  }
  bool released = false;
  for (unsigned rest = waiting; rest != 0;) {
    const int lane = std::countr_zero(rest);
    const unsigned participants = calls[lane]->mask & alive;
    bool complete_here = (participants & ~waiting) == 0;
    for (unsigned others = participants & waiting; others != 0 && complete_here; others &= others - 1) {
      const WarpCall& other = *calls[std::countr_zero(others)];
      complete_here = other.mask == calls[lane]->mask && other.primitive == calls[lane]->primitive &&
                      other.where == calls[lane]->where;
    }
    rest &= ~(participants | 1u << lane);
    if (!complete_here) continue;
    try {
      complete(calls, participants);
    } catch (const Fault& fault) {
      throw Fault(fault.kind(),
                  fmt::format("{}: warp {}: {} at {}", place(), warp, fault.what(), text_of(calls[lane]->where)));
    }
    for (unsigned group = participants; group != 0; group &= group - 1) {
      lanes[std::countr_zero(group)]->state = State::ready;
    }
    released = true;
  }
  return released;
}

bool Machine::release_block() {
  const Thread* first = nullptr;
  for (const Thread* thread : threads_) {
    if (thread->state == State::done) continue;
    if (thread->state != State::at_block) return false;
    if (first != nullptr && first->where != thread->where) return false;
    first = thread;
  }
  for (Thread* thread : threads_) {
    if (thread->state == State::at_block) thread->state = State::ready;
  }
  return first != nullptr;
}

void Machine::wait_for_block(Place where) {
  Thread& thread = *threads_[running_];
  thread.state = State::at_block;
  thread.where = where;
  thread.fiber.suspend();
  if (giving_up_) throw Unwind();
}

std::uint64_t Machine::wait_for_warp(const WarpCall& call) {
  Thread& thread = *threads_[running_];
  if ((call.mask >> lane() & 1) == 0) {
    throw Fault(FaultKind::mask, fmt::format("{}: {} at {}: mask {:#010x} leaves out the lane {} that calls it",
                                             place(), name_of(call.primitive), text_of(call.where), call.mask, lane()));
  }
  thread.state = State::at_warp;
  thread.call = call;
  thread.fiber.suspend();
  if (giving_up_) throw Unwind();
  return thread.call.result;
}

std::byte* Machine::static_shared(const void* key, const char* name, std::size_t bytes) {
  std::byte* data = shared_.piece(key, name, bytes);
  if (shared_.static_bytes() > kMostStaticSharedBytes ||
      shared_.static_bytes() + launch_->shared_bytes > kMostSharedBytes) {
    throw Fault(FaultKind::launch,
                fmt::format("{}: {} brings static shared memory to {} bytes (at most {}; with dynamic at most {})",
                            place(), name, shared_.static_bytes(), kMostStaticSharedBytes, kMostSharedBytes));
  }
  return data;
}

std::string Machine::place() const {
  if (launch_ == nullptr) return "no kernel";
  std::string text = fmt::format("{}: block {}", function_name(launch_->kernel), text_of(here.block_index));
  if (running_ >= 0) text += fmt::format(", thread {}", text_of(threads_[running_]->index));
  return text;
}

// Runs of threads that wait for the same thing.
std::string Machine::describe_wait() const {
  const auto one = [&](const Thread& thread) -> std::string {
    if (thread.state == State::done) return "have ended";
    if (thread.state == State::at_block) return "wait in __syncthreads at " + text_of(thread.where);
    return fmt::format("wait in {} of mask {:#010x} at {}", name_of(thread.call.primitive), thread.call.mask,
                       text_of(thread.call.where));
  };
  std::string text;
  for (std::size_t begin = 0, end; begin < threads_.size(); begin = end) {
    const std::string wait = one(*threads_[begin]);
    for (end = begin + 1; end < threads_.size() && one(*threads_[end]) == wait;) ++end;
    text += fmt::format("{} threads {}..{} {}", begin == 0 ? "" : ";", begin, end - 1, wait);
  }
  return text;
}

void Machine::report_stuck() const {
  const auto in_warp = [](const Thread* thread) { return thread->state == State::at_warp; };
  // Lanes of one warp that all wait for each other, but under other names.
  bool masks = false;
  for (std::size_t first = 0; first < threads_.size() && !masks; first += kLanes) {
    const auto lanes = lanes_of(static_cast<int>(first / kLanes));
    masks = std::all_of(lanes.begin(), lanes.end(),
                        [&](const Thread* t) { return t->state == State::done || in_warp(t); }) &&
            std::any_of(lanes.begin(), lanes.end(), in_warp);
  }
  throw Fault(masks ? FaultKind::mask : FaultKind::divergence,
              fmt::format("{}: {}:{}", place(),
                          masks ? "lanes of a warp call different primitives" : "barrier divergence", describe_wait()));
}

}  // namespace tandem::simt
