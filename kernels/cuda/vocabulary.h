// Picking tokens where the logits lie, so that greedy and coupled steps copy back ids only. Order everywhere: larger
// first, ties to the lowest id; NaN and -inf are never chosen. All pointers are device memory; calls are queued.
// Results of rows behind the count of the logits are unspecified.
#pragma once
#include <cstdint>

#include "kernels/cuda/memory.h"
#include "kernels/cuda/rank_key.h"
#include "kernels/cuda/select.h"
#include "src/base/random.h"

namespace tandem::TANDEM_GPU {

// What turns a row into a distribution, in this order (design.md section 4).
struct DrawParams {
  double temperature;  // above 0
  int top_k = 0;       // 0 = all
  double top_p = 1, min_p = 0;
};

// In place of a token: a draw that the host's roundings could decide otherwise.
inline constexpr TokenId kUndecided = -2;

// Scratch of the ops. Not thread-safe: one stream.
class VocabularyOps {
 public:
  static constexpr int kMaxTopK = 256;

  // For up to `max_rows` rows of `vocabulary` logits. `whole_rows`: draw() may be asked for all tokens under top_p;
  // that takes 32 bytes a logit.
  VocabularyOps(int max_rows, int vocabulary, bool whole_rows, cudaStream_t stream);

  // ids [rows]: the best token, -1 for a row without a usable one.
  void argmax(TokenId* ids, const LogitRows& logits);
  // ids, values [rows, k], best first; behind the last usable one -1 and -inf. k: 1 .. kMaxTopK.
  void top_k(TokenId* ids, float* values, const LogitRows& logits, int k);
  // ids [rows]: argmax of logit / temperature + Gumbel noise of (position, token) over the tokens of at least min_p
  // times the largest probability; +inf logits share all mass; -1 for a row without a usable logit. positions [rows];
  // temperature above 0. The host draws the same id, or there is kUndecided: where two times of arrival, or a weight
  // and the bar, are nearer than 2^-40 of themselves, which is a thousand times what its exp and log may differ by.
  void gumbel_argmax(TokenId* ids, const LogitRows& logits, double temperature, double min_p, const Noise& noise,
                     const std::uint32_t* positions);
  // The same after temperature, top-k, top-p and min-p. top_k: 0 .. kMaxTopK; 0 needs `whole_rows` unless top_p is 1.
  // kUndecided also where a cumulative weight lies nearer to the cut of top-p than the sums' roundings (2^-36 of the
  // total for 256 candidates, 1e-8 for a whole row), or the cut parts two weights that are about equal.
  void draw(TokenId* ids, const LogitRows& logits, const DrawParams& params, const Noise& noise,
            const std::uint32_t* positions);

 private:
  void select_keys(const LogitRows& logits, int k);
  void best_keys(TokenId* ids, const LogitRows& logits);

  cudaStream_t stream_;
  int max_keys_;
  unsigned chunks_;  // of a row
  Select select_;
  DeviceMemory best_;            // [max_rows] keys
  DeviceMemory keys_;            // [max_rows, max_keys_]
  DeviceMemory weights_, sums_;  // [max_rows, max_keys_] of 64 bits
  DeviceMemory parts_;           // [max_rows, chunks_] keys
  DeviceMemory arrivals_;        // [max_rows, chunks_]
};

}  // namespace tandem::TANDEM_GPU
