// Gathers and compaction of rows of logits by Thrust, which runs on the device and, with its CPP system, in the
// emulation. All pointers are device memory.
#pragma once
#include "kernels/cuda/platform.h"
#include "src/base/types.h"

namespace tandem::TANDEM_GPU {

// out[i] = row[tokens[i]], i < count. Queued.
void gather_logits(float* out, const float* row, const TokenId* tokens, int count, cudaStream_t stream);

// ids, values = the entries of row [vocabulary] above `bar`, ids ascending; NaN is not above. Returns their number
// after it has waited for the stream. ids and values hold `vocabulary` entries.
int compact_above(TokenId* ids, float* values, const float* row, int vocabulary, float bar, cudaStream_t stream);

}  // namespace tandem::TANDEM_GPU
