#include "kernels/cpu/bandwidth.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <vector>

#include "kernels/cpu/memory.h"

namespace tandem {
namespace {

constexpr std::size_t kBytes = std::size_t{1} << 30;

// Four streams of 16-byte vectors, so that sums wait for nothing; the result keeps the reads alive.
std::uint64_t read_all(const std::byte* data, std::size_t bytes) {
  using Vector = std::uint64_t __attribute__((vector_size(16)));
  Vector sums[4] = {};
  const auto* v = reinterpret_cast<const Vector*>(data);
  for (std::size_t i = 0; i < bytes / sizeof(Vector); i += 4) {
    for (int k = 0; k < 4; ++k) sums[k] ^= v[i + k];
  }
  sums[0] ^= sums[1] ^ sums[2] ^ sums[3];
  return sums[0][0] ^ sums[0][1];
}

}  // namespace

double measure_read_bandwidth(ThreadPool& pool, int repeats) {
  cpu::Pages pages(kBytes);
  std::vector<std::uint64_t> results(pool.threads());
  const auto over_share = [&](const auto& work) {
    pool.run([&](int thread) {
      const std::size_t n = pool.threads(), lines = kBytes / 64;
      const std::size_t first = lines * thread / n * 64, last = lines * (thread + 1) / n * 64;
      work(thread, pages.data() + first, last - first);
    });
  };
  // Written once: pages that nobody wrote all read as one page of zeros.
  over_share([](int thread, std::byte* data, std::size_t bytes) { std::fill_n(data, bytes, std::byte(thread + 1)); });
  std::vector<double> seconds;
  for (int i = 0; i < std::max(repeats, 1); ++i) {
    const auto start = std::chrono::steady_clock::now();
    over_share([&](int thread, std::byte* data, std::size_t bytes) { results[thread] ^= read_all(data, bytes); });
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  std::nth_element(seconds.begin(), seconds.begin() + seconds.size() / 2, seconds.end());
  volatile std::uint64_t sink = 0;
  for (const std::uint64_t r : results) sink = sink ^ r;
  return static_cast<double>(kBytes) / seconds[seconds.size() / 2];
}

}  // namespace tandem
