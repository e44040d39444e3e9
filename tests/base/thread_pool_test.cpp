#include "src/base/thread_pool.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <numeric>
#include <thread>
#include <vector>

namespace tandem {
namespace {

double cpu_seconds() {
  timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

TEST(ThreadPool, EveryThreadRunsEveryWorkOnce) {
  for (int threads = 1; threads <= 8; ++threads) {
    ThreadPool pool(threads);
    ASSERT_EQ(pool.threads(), threads);
    std::vector<int> calls(threads);
    for (int i = 0; i < 200; ++i) pool.run([&](int thread) { ++calls[thread]; });
    EXPECT_EQ(calls, std::vector<int>(threads, 200));
  }
}

TEST(ThreadPool, ThreadZeroIsTheCaller) {
  ThreadPool pool(3);
  std::vector<std::thread::id> ids(3);
  pool.run([&](int thread) { ids[thread] = std::this_thread::get_id(); });
  EXPECT_EQ(ids[0], std::this_thread::get_id());
  EXPECT_NE(ids[1], ids[0]);
  EXPECT_NE(ids[2], ids[1]);
}

TEST(ThreadPool, SharesCoverEveryItemOnce) {
  for (int threads = 1; threads <= 8; ++threads) {
    ThreadPool pool(threads);
    for (const int count : {0, 1, 7, 8, 1000, 2147483647}) {
      int next = 0;
      for (int t = 0; t < threads; ++t) {
        const auto [first, last] = pool.share(count, t);
        EXPECT_EQ(first, next);
        EXPECT_LE(last - first, static_cast<std::int64_t>(count) / threads + 1);
        next = last;
      }
      EXPECT_EQ(next, count);
    }
  }
}

// What one thread writes before a barrier all read after it, with more threads than cores too.
TEST(ThreadPool, BarriersSeparatePhases) {
  for (int threads = 1; threads <= 8; ++threads) {
    ThreadPool pool(threads);
    std::vector<int> values(threads), sums(threads);
    for (int run = 0; run < 20; ++run) {
      pool.run([&](int thread) {
        for (int phase = 0; phase < 10; ++phase) {
          values[thread] = 100 * run + phase + thread;
          pool.barrier();
          sums[thread] = std::accumulate(values.begin(), values.end(), 0);
          pool.barrier();
        }
      });
      const int want = threads * (100 * run + 9) + threads * (threads - 1) / 2;
      EXPECT_EQ(sums, std::vector<int>(threads, want));
    }
  }
}

// B50: four threads for each core, and a neighbour that keeps every core busy: slower, but it ends and is right.
TEST(ThreadPool, OversubscribedBesideABusyNeighbourFinishes) {
  const int cores = default_threads(), threads = std::min(4 * cores, 64);
  std::atomic<bool> stop{false};
  std::vector<std::thread> neighbours;
  for (int i = 0; i < cores; ++i) {
    neighbours.emplace_back([&] {
      while (!stop.load(std::memory_order_relaxed)) continue;
    });
  }
  ThreadPool pool(threads);
  std::vector<int> values(threads), sums(threads);
  for (int run = 0; run < 10; ++run) {
    pool.run([&](int thread) {
      values[thread] = run + thread;
      pool.barrier();
      sums[thread] = std::accumulate(values.begin(), values.end(), 0);
    });
    EXPECT_EQ(sums, std::vector<int>(threads, threads * run + threads * (threads - 1) / 2));
  }
  stop = true;
  for (std::thread& t : neighbours) t.join();
}

TEST(ThreadPool, RunsAgainAfterSleeping) {
  ThreadPool pool(4);
  std::vector<int> calls(4);
  for (int i = 0; i < 5; ++i) {
    pool.run([&](int thread) { ++calls[thread]; });
    std::this_thread::sleep_for(std::chrono::milliseconds(8));  // longer than workers spin
  }
  EXPECT_EQ(calls, std::vector<int>(4, 5));
}

// Workers that spun would take a core each.
TEST(ThreadPool, AnIdlePoolTakesLittleCpuTime) {
  ThreadPool pool(4);
  pool.run([](int) {});
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const auto start = std::chrono::steady_clock::now();
  const double cpu_before = cpu_seconds();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const double cpu = cpu_seconds() - cpu_before;
  const double wall = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  EXPECT_LT(cpu, 0.2 * wall);
}

TEST(ThreadPool, SizesOutsideTheRangeAreClamped) {
  EXPECT_EQ(ThreadPool(0).threads(), 1);
  EXPECT_EQ(ThreadPool(-3).threads(), 1);
}

TEST(DefaultThreads, IsPositiveAndWithinTheAffinity) {
  cpu_set_t set;
  CPU_ZERO(&set);
  ASSERT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
  EXPECT_GE(default_threads(), 1);
  EXPECT_LE(default_threads(), CPU_COUNT(&set));
}

TEST(DefaultThreads, FollowsANarrowerAffinity) {
  cpu_set_t all, one;
  CPU_ZERO(&all);
  ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &all)) {
      CPU_SET(cpu, &one);
      break;
    }
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(default_threads(), 1);
  sched_setaffinity(0, sizeof all, &all);
}

}  // namespace
}  // namespace tandem
