// Picking tokens where the logits lie, so that greedy and coupled steps copy back ids only. Order everywhere: larger
// first, ties to the lowest id; NaN and -inf are never chosen. All pointers are device memory; calls are queued.
#pragma once
#include <cstddef>
#include <cstdint>

#include "kernels/cuda/select.h"
#include "src/base/random.h"

namespace tandem::TANDEM_GPU {

// What turns the best k logits of a row into a distribution, in this order (design.md section 4).
struct DrawParams {
  double temperature;  // above 0
  int top_k;           // 1 .. kMaxTopK
  double top_p = 1, min_p = 0;
};

inline constexpr int kMaxTopK = 256;

// Scratch of the ops for up to `max_rows` rows of `vocabulary` logits. Not thread-safe: one stream.
class VocabularyOps {
 public:
  VocabularyOps(int max_rows, int vocabulary, cudaStream_t stream);

  // ids [rows]: the best token, -1 for a row without a usable one.
  void argmax(TokenId* ids, const LogitRows& logits);
  // ids, values [rows, k], best first; behind the last usable one -1 and -inf. k: 1 .. kMaxTopK.
  void top_k(TokenId* ids, float* values, const LogitRows& logits, int k);
  // ids [rows]: argmax of logit / temperature + Gumbel noise of (position, token), a draw of plain decoding without
  // filters; +inf logits share all mass. positions [rows]; temperature above 0.
  void gumbel_argmax(TokenId* ids, const LogitRows& logits, double temperature, const Noise& noise,
                     const std::uint32_t* positions);
  // ids [rows]: the draw of plain decoding from the best top_k logits after temperature, top-p and min-p.
  void draw(TokenId* ids, const LogitRows& logits, const DrawParams& params, const Noise& noise,
            const std::uint32_t* positions);
  // out [rows, count] = logits of the tokens named.
  void gather(float* out, const LogitRows& logits, const TokenId* tokens, int count);

 private:
  void select_keys(const LogitRows& logits, int k);  // the k largest keys of each row, sorted, to keys_

  cudaStream_t stream_;
  Select select_;
  DeviceMemory keys_;  // [max_rows, kMaxTopK] of 64 bits
  DeviceMemory partial_;
};

}  // namespace tandem::TANDEM_GPU
