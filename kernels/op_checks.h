// What every backend refuses before it runs an op: shapes that do not fit, places that a cache does not have.
#pragma once
#include <span>
#include <string_view>

#include "kernels/backend.h"

namespace tandem {

// Each throws Error(model) naming the op, what it expected and what it got; a token out of range is Error(input).
void check_same_shape(std::string_view op, Rows a, Rows b);
void check_embed(Rows out, const Weight& table, std::span<const TokenId> tokens);
void check_matmul(const Projection& projection, Rows x);
void check_gated_matmul(const Projection& gate, const Projection& up);
void check_rope(Rows heads, int head_dim, std::span<const Position> positions, const RopeTable& table);
void check_store_kv(const KvLayer& layer, int base, Rows keys, Rows values);
void check_attention(Rows out, Rows queries, const KvLayer& layer, int base, const AttentionParams& params, Mask mask);
void check_gather_rows(Rows out, Rows x, std::span<const int> rows);
// Of a weight that is about to be loaded; `backend` names who refuses.
void check_weight(std::string_view backend, const WeightSource& source);

}  // namespace tandem
