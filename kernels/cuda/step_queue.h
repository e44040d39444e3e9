// Launches that wait until something needs their results, so that a step that was seen before goes to the device as one
// graph. Two steps are the same when every launch has the same arguments, byte for byte: what differs from step to step
// lies in device memory (step_inputs.h).
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <tuple>
#include <type_traits>
#include <vector>

#include "kernels/cuda/graph.h"
#include "kernels/cuda/without_gaps.h"

namespace tandem::TANDEM_GPU {

// Not thread-safe.
class StepQueue {
 public:
  // `graphs`: whether to replay; if not, launches still wait for flush().
  StepQueue(const Stream& stream, bool graphs) : stream_(stream), graphs_(graphs) {}

  // Calls op(arguments..., stream) at the next flush(), in order. Device memory that the arguments name must live until
  // then.
  template <typename... Parameters, typename... Arguments>
  void add(void (*op)(Parameters...), Arguments... arguments);
  // Runs what waits. Throws what its launches throw, and forgets the rest.
  void flush();
  // The same for destructors: a launch that fails is forgotten; the next synchronisation shows what went wrong.
  void settle() noexcept;

  bool empty() const { return waiting_.empty(); }
  // Grows with every flush.
  std::uint64_t epoch() const { return epoch_; }
  // Steps that were replayed so far.
  std::uint64_t replays() const { return replays_; }
  std::size_t graphs() const { return known_.size(); }

 private:
  using Bytes = std::vector<std::byte>;
  struct Header {
    void (*call)(const std::byte* arguments, cudaStream_t stream);
    std::size_t bytes;  // to the next header
  };
  struct Known {
    std::uint64_t hash;
    std::uint64_t last_use;
    Bytes launches;
    Graph graph;
  };
  static constexpr std::size_t kAlignment = 16;
  static constexpr std::size_t kMostGraphs = 64;  // tile counts of target and draft, at some borders of splits

  static std::size_t aligned(std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }
  static std::uint64_t hash_of(const Bytes& launches);
  void run(const Bytes& launches) const;
  void replay_or_run(const Bytes& launches);
  void remember(std::uint64_t hash, const Bytes& launches);

  const Stream& stream_;
  const bool graphs_;
  Bytes waiting_, running_;
  std::vector<Known> known_;
  std::vector<std::uint64_t> seen_once_;  // hashes of the latest steps without a graph
  std::uint64_t epoch_ = 0, replays_ = 0;
};

template <typename... Parameters, typename... Arguments>
void StepQueue::add(void (*op)(Parameters...), Arguments... arguments) {
  static_assert((std::is_trivially_copyable_v<Arguments> && ...), "arguments are kept and compared byte by byte");
  using Kept = std::tuple<void (*)(Parameters...), Arguments...>;
  static_assert(alignof(Kept) <= kAlignment);
  const std::size_t at = waiting_.size(), bytes = aligned(sizeof(Header)) + aligned(sizeof(Kept));
  waiting_.resize(at + bytes);  // zeros: gaps between arguments compare equal
  const Header header{[](const std::byte* kept, cudaStream_t stream) {
                        std::apply([&](auto* function, const auto&... values) { function(values..., stream); },
                                   *reinterpret_cast<const Kept*>(kept));
                      },
                      bytes};
  std::memcpy(waiting_.data() + at, &header, sizeof header);
  auto* const kept = new (waiting_.data() + at + aligned(sizeof(Header))) Kept(op, arguments...);
  std::apply([](auto&... values) { (clear_gaps(values), ...); }, *kept);
}

}  // namespace tandem::TANDEM_GPU
