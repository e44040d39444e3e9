#include "src/base/thread_pool.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <system_error>

#include "src/base/cpu_quota.h"
#include "src/base/error.h"

namespace tandem {
namespace {

inline void cpu_relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Spins briefly, then gives the core away, so that more threads than cores degrade instead of hanging.
class Backoff {
 public:
  void wait() {
    if (++spins_ < kSpins) {
      cpu_relax();
    } else {
      std::this_thread::yield();
    }
  }

 private:
  static constexpr int kSpins = 2000;  // about 0.1 ms; a yield costs little when nobody else wants the core
  int spins_ = 0;
};

// How long a worker spins for the next run before it sleeps: longer than any gap inside a pass.
constexpr auto kIdle = std::chrono::milliseconds(2);

}  // namespace

ThreadPool::ThreadPool(int threads) {
  threads = std::clamp(threads, 1, 256);
  workers_.reserve(threads - 1);
  try {
    for (int i = 1; i < threads; ++i) workers_.emplace_back([this, i] { worker(i); });
  } catch (const std::system_error& error) {
    const std::size_t started = workers_.size() + 1;
    stop();
    fail(ErrorKind::config, "threads: expected to start {}, got {}: {}", threads, started, error.what());
  }
}

ThreadPool::~ThreadPool() { stop(); }

void ThreadPool::stop() {
  stopping_.store(true);
  generation_.fetch_add(1);
  generation_.notify_all();
  for (std::thread& t : workers_) t.join();
  workers_.clear();
}

void ThreadPool::run_erased(Erased call, const void* work) {
  if (workers_.empty()) {
    call(work, 0);
    return;
  }
  call_ = call;
  work_ = work;
  running_.store(static_cast<int>(workers_.size()), std::memory_order_relaxed);
  generation_.fetch_add(1);  // sequentially consistent with the worker's sleepers_ increment: no lost wake-up
  if (sleepers_.load() > 0) generation_.notify_all();
  call(work, 0);
  Backoff backoff;
  while (running_.load(std::memory_order_acquire) != 0) backoff.wait();
}

void ThreadPool::worker(int thread) {
  std::uint32_t seen = 0;
  for (;;) {
    const auto idle_since = std::chrono::steady_clock::now();
    for (int spins = 0; generation_.load(std::memory_order_acquire) == seen; ++spins) {
      cpu_relax();
      if (spins % 1024 == 1023) {
        if (std::chrono::steady_clock::now() - idle_since > kIdle) {
          sleepers_.fetch_add(1);
          generation_.wait(seen);
          sleepers_.fetch_sub(1);
        } else {
          std::this_thread::yield();
        }
      }
    }
    ++seen;
    if (stopping_.load()) return;
    call_(work_, thread);
    running_.fetch_sub(1, std::memory_order_release);
  }
}

void ThreadPool::barrier() {
  if (workers_.empty()) return;
  const std::uint32_t turn = barrier_turn_.load(std::memory_order_relaxed);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads()) {
    arrived_.store(0, std::memory_order_relaxed);
    barrier_turn_.store(turn + 1, std::memory_order_release);
    return;
  }
  Backoff backoff;
  while (barrier_turn_.load(std::memory_order_acquire) == turn) backoff.wait();
}

// A fraction of a CPU is left over: spinning threads would use the quota up early and all stop together.
int threads_for(int cpus, double quota) {
  if (quota > 0) cpus = std::min(cpus, static_cast<int>(std::min(quota, 1e6)));
  return std::max(cpus, 1);
}

int default_threads() {
  cpu_set_t set;
  CPU_ZERO(&set);
  const int cpus = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set)
                                                               : static_cast<int>(std::thread::hardware_concurrency());
  return threads_for(cpus, cpu_quota());
}

}  // namespace tandem
