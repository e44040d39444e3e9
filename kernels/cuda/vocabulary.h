// Picking tokens where the logits lie, so that greedy and coupled steps copy back ids only. Order everywhere: larger
// first, ties to the lowest id; NaN and -inf are never chosen. All pointers are device memory; calls are queued.
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
  // ids [rows]: argmax of logit / temperature + Gumbel noise of (position, token), a draw of plain decoding without
  // filters; +inf logits share all mass; -1 for a row without a usable logit. positions [rows]; temperature above 0.
  void gumbel_argmax(TokenId* ids, const LogitRows& logits, double temperature, const Noise& noise,
                     const std::uint32_t* positions);
  // The same after temperature, top-k, top-p and min-p. top_k: 0 .. kMaxTopK; 0 needs `whole_rows` unless top_p is 1
  // and min_p 0. Equal to the host's chain but where a cumulative probability lies within 1e-8 of top_p.
  void draw(TokenId* ids, const LogitRows& logits, const DrawParams& params, const Noise& noise,
            const std::uint32_t* positions);

 private:
  void select_keys(const LogitRows& logits, int k);

  cudaStream_t stream_;
  int max_keys_;
  Select select_;
  DeviceMemory best_;            // [max_rows] keys
  DeviceMemory keys_;            // [max_rows, max_keys_]
  DeviceMemory weights_, sums_;  // [max_rows, max_keys_] of 64 bits
  DeviceMemory arrivals_;        // [max_rows, chunks of a row]
};

}  // namespace tandem::TANDEM_GPU
