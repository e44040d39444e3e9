// One pool for the whole process: workers spin between the ops of a pass and sleep when idle.
#pragma once
#include <atomic>
#include <cstdint>
#include <thread>
#include <type_traits>
#include <vector>

namespace tandem {

class ThreadPool {
 public:
  // `threads` counts the caller, so 1 makes no worker. Clamped to 1..256.
  // Throws Error(config) when the system refuses a thread.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  // Runs work(thread) once on each thread 0..threads()-1 (0 is the caller) and returns when all are done.
  // Only one thread may call it at a time; `work` must not throw and must not call run. Allocates nothing.
  template <typename Work>
  void run(const Work& work) {
    run_erased([](const void* w, int thread) { (*static_cast<const Work*>(w))(thread); }, &work);
  }

  // Inside work: waits until every thread of this run has arrived. All threads must call it equally often.
  void barrier();

  // Splits `count` items evenly: thread t gets [first, last).
  struct Share {
    int first, last;
  };
  Share share(int count, int thread) const {
    const std::int64_t n = threads();
    return {static_cast<int>(count * std::int64_t{thread} / n),
            static_cast<int>(count * (std::int64_t{thread} + 1) / n)};
  }

 private:
  using Erased = void (*)(const void*, int);
  void run_erased(Erased call, const void* work);
  void worker(int thread);
  void stop();

  std::vector<std::thread> workers_;
  Erased call_ = nullptr;
  const void* work_ = nullptr;
  alignas(64) std::atomic<std::uint32_t> generation_{0};  // bumped to start a run
  alignas(64) std::atomic<int> running_{0};               // workers not yet done
  alignas(64) std::atomic<int> arrived_{0};
  alignas(64) std::atomic<std::uint32_t> barrier_turn_{0};
  std::atomic<int> sleepers_{0};
  std::atomic<bool> stopping_{false};
};

// The CPUs of the affinity mask or, when it is smaller, the whole CPUs of the cgroup's quota; at least 1.
int default_threads();
// The same for given figures; a quota of 0 is none.
int threads_for(int cpus, double quota);

}  // namespace tandem
