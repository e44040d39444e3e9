// The ops pick() and best() of the backend: which Pickings the device can do, what it reads for them, and how
// results come to the host.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "kernels/cuda/step_inputs.h"
#include "kernels/cuda/vocabulary.h"
#include "src/base/picking.h"

namespace tandem::TANDEM_GPU {

// Not thread-safe.
class Picker {
 public:
  // Lists that a launch reads, in device memory.
  struct Inputs {
    const std::uint32_t* positions;
    const std::uint32_t* usable;  // null: all
  };

  // `stream` outlives it.
  explicit Picker(const Stream& stream);

  // Greedy, top-k and candidates up to VocabularyOps::kMaxTopK, or no filter that needs the whole row sorted.
  static bool can(const Picking& picking);
  // May flush the queue, as DeviceList::put().
  Inputs put(const Picking& picking, Staging& staging, StepQueue& queue);
  // Queues it for `logits`, up to kMaxPassRows of them, with the inputs put last.
  void queue(const LogitRows& logits, const Picking& picking, const Inputs& inputs, StepQueue& queue);
  // Queues the copy of the ids behind a flushed queue; they are there once the stream was waited for.
  std::span<const TokenId> copy_ids(int rows);
  // The same of candidates, `count` a row; returns the bytes. Once they are there, candidates() has them.
  std::size_t copy_candidates(int rows, int count);
  std::span<const Candidate> candidates();

 private:
  VocabularyOps& ops_for(int vocabulary);

  const Stream& stream_;
  std::map<int, std::unique_ptr<VocabularyOps>> ops_;  // by vocabulary: a target's and a draft's may differ
  DeviceList<std::uint32_t> positions_, usable_;
  DeviceMemory ids_, values_;  // [kMaxPassRows, VocabularyOps::kMaxTopK] at most
  PinnedMemory host_ids_, host_values_;
  std::vector<Candidate> candidates_;
};

}  // namespace tandem::TANDEM_GPU
