#include "kernels/cpu/yardstick.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <vector>

#include "kernels/cpu/isa.h"
#include "kernels/cpu/memory.h"

namespace tandem {
namespace {

constexpr std::size_t kBytes = std::size_t{1} << 30;
constexpr int kRounds = 1 << 20;

// Median seconds of work(thread) on all threads.
template <typename Work>
double median_seconds(ThreadPool& pool, int repeats, const Work& work) {
  std::vector<double> seconds;
  for (int i = 0; i < std::max(repeats, 1); ++i) {
    const auto start = std::chrono::steady_clock::now();
    pool.run(work);
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  std::nth_element(seconds.begin(), seconds.begin() + seconds.size() / 2, seconds.end());
  return seconds[seconds.size() / 2];
}

// Keeps results alive that nobody reads.
void consume(const std::vector<std::uint32_t>& results) {
  volatile std::uint32_t sink = 0;
  for (const std::uint32_t r : results) sink = sink ^ r;
}

}  // namespace

double measure_read_bandwidth(ThreadPool& pool, int repeats) {
  const cpu::KernelTable& kernels = kernels_of(choose_isa());
  cpu::Pages pages(kBytes);
  auto* data = reinterpret_cast<std::uint8_t*>(pages.data());
  std::vector<std::uint32_t> results(pool.threads());
  const auto share = [&](int thread) {
    const std::size_t n = pool.threads(), pieces = kBytes / 256;
    const std::size_t first = pieces * thread / n * 256, last = pieces * (thread + 1) / n * 256;
    return std::pair(data + first, last - first);
  };
  // Written once: pages that nobody wrote all read as one page of zeros.
  pool.run([&](int thread) { std::fill_n(share(thread).first, share(thread).second, std::uint8_t(thread + 1)); });
  const double seconds = median_seconds(pool, repeats, [&](int thread) {
    const auto [first, bytes] = share(thread);
    results[thread] ^= kernels.read_lines(first, bytes);
  });
  consume(results);
  return static_cast<double>(kBytes) / seconds;
}

double measure_multiply_peak(ThreadPool& pool, int repeats) {
  const cpu::KernelTable& kernels = kernels_of(choose_isa());
  std::vector<std::uint32_t> results(pool.threads());
  const double seconds = median_seconds(pool, repeats, [&](int thread) {
    results[thread] ^= static_cast<std::uint32_t>(kernels.multiply_loop(kRounds));
  });
  consume(results);
  return static_cast<double>(kRounds) * cpu::kMultiplyLoopMacs * pool.threads() / seconds;
}

}  // namespace tandem
