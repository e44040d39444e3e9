// The ops of the backend: each checks its shapes, puts its lists on the device and queues its launches.
#include <algorithm>
#include <array>
#include <tuple>

#include "kernels/cuda/backend_class.h"
#include "kernels/cuda/kv.h"
#include "kernels/cuda/pointwise.h"
#include "kernels/op_checks.h"
#include "kernels/quant/tile.h"
#include "src/base/error.h"

namespace tandem::TANDEM_GPU {
namespace {

constexpr Gate gate_of(Activation activation) { return activation == Activation::gelu ? Gate::gelu : Gate::silu; }

}  // namespace

void CudaBackend::embed(Rows out, const Weight& table, std::span<const TokenId> tokens) {
  check_embed(out, table, tokens);
  if (tokens.empty()) return;
  pass_.begin(out.rows);
  const auto [ids, count] =
      put_together([&] { return std::pair(tokens_.put(tokens, staging_, queue_), count_of(out.rows)); });
  queue(&TANDEM_GPU::embed, fit(out), matrix_of(table).tiled(), ids, count);
}

void CudaBackend::rms_norm(Rows out, Rows x, const Weight& gain, float epsilon) {
  check_same_shape("rms_norm", out, x);
  const float* values = vector_of("rms_norm: gain", &gain, x.cols);
  if (x.rows == 0) return;
  queue_norm(out, [&](QuantisedRows acts, RowCount count) {
    queue(&TANDEM_GPU::rms_norm, fit(out, true), fit(x, true), values, epsilon, acts, count);
  });
}

void CudaBackend::add_rms_norm(Rows out, Rows hidden, Rows x, const Weight& gain, float epsilon) {
  check_same_shape("add_rms_norm", hidden, x);
  check_same_shape("add_rms_norm", out, hidden);
  const float* values = vector_of("add_rms_norm: gain", &gain, x.cols);
  if (x.rows == 0) return;
  queue_norm(out, [&](QuantisedRows acts, RowCount count) {
    queue(&TANDEM_GPU::add_rms_norm, fit(out, true), fit(hidden, true), fit(x, true), values, epsilon, acts, count);
  });
}

QuantisedRows CudaBackend::acts_for(Rows x) {
  QuantisedRows acts{};
  acts.blocks = act_blocks_of(x.cols);
  acts.row_slots = row_slots_of(x.rows);
  // For the largest pass at once: addresses are arguments of launches.
  const std::size_t places = static_cast<std::size_t>(acts.blocks) * kMaxPassRows;
  grow(act_codes_, places * kSubBlock);
  grow(act_sums_, places * sizeof(ActBlock));
  acts.codes = act_codes_.as<std::int8_t>();
  acts.sums = act_sums_.as<ActBlock>();
  return acts;
}

void CudaBackend::prepare_inputs(std::span<const Projection> projections, Rows x) {
  for (const Projection& projection : projections) check_matmul(projection, x);
  const bool codes =
      std::ranges::any_of(projections, [](const Projection& p) { return !holds_floats(matrix_of(*p.weight).format); });
  if (!codes || x.rows == 0 || x.rows > kMaxPassRows) {
    quantised_ = {};  // the products may overwrite what was quantised
  } else if (!same_rows(quantised_, x)) {
    const Rows rows = fit(x);
    acts_ = acts_for(rows);
    const RowCount count = count_of(x.rows);
    queue(&quantise_rows, acts_, rows, count);
    quantised_ = x;
  }
}

MatmulPart CudaBackend::part_of(const Projection& projection) {
  const CudaWeight& weight = matrix_of(*projection.weight);
  return {weight.memory.as<const std::uint8_t>(), vector_of("matmul: bias", projection.bias, weight.rows),
          projection.out.data, projection.out.stride, weight.rows};
}

MatmulCall CudaBackend::call_for(const Projection& first, Rows x) const {
  const CudaWeight& weight = matrix_of(*first.weight);
  MatmulCall call{};
  call.format = weight.format;
  call.rows = fit(x).rows;
  call.cols = x.cols;
  call.tile_bytes = weight.tile_bytes;
  call.acts = acts_;
  call.x = x.data;
  call.x_stride = x.stride;
  return call;
}

void CudaBackend::launch_matmul(MatmulCall call, int rows) {
  call.count = count_of(rows);
  queue_.add(holds_floats(call.format) ? &matmul_floats : &matmul_codes, call);  // its inputs stay quantised
}

// Matrices of one format go together, up to kMaxParts a launch: small ones would leave most of the device idle.
void CudaBackend::matmul(std::span<const Projection> projections, Rows x) {
  prepare_inputs(projections, x);
  if (x.rows == 0) return;
  if (x.rows > kMaxPassRows) {
    queue_.flush();
    return prefill_.run(projections, x);
  }
  for (std::size_t i = 0; i < projections.size();) {
    MatmulCall call = call_for(projections[i], x);
    while (i < projections.size() && call.part_count < kMaxParts && projections[i].weight->format == call.format) {
      call.parts[call.part_count++] = part_of(projections[i++]);
    }
    launch_matmul(call, x.rows);
  }
}

void CudaBackend::gated_matmul(const Projection& gate, const Projection& up, Rows x, Activation activation) {
  check_gated_matmul(gate, up);
  if (x.rows > kMaxPassRows || gate.weight->format != up.weight->format) {
    return Backend::gated_matmul(gate, up, x, activation);
  }
  prepare_inputs(std::array{gate, up}, x);
  if (x.rows == 0) return;
  MatmulCall call = call_for(gate, x);
  call.parts[0] = part_of(gate);
  call.parts[1] = part_of(up);
  call.part_count = 2;
  call.gate = gate_of(activation);
  launch_matmul(call, x.rows);
}

void CudaBackend::rope(Rows heads, int head_dim, std::span<const Position> positions, const RopeTable& table) {
  check_rope(heads, head_dim, positions, table);
  if (heads.rows == 0) return;
  const auto [at, count] =
      put_together([&] { return std::pair(positions_.put(positions, staging_, queue_), count_of(heads.rows)); });
  queue(&TANDEM_GPU::rope, fit(heads), head_dim, at, table, count);
}

void CudaBackend::store_kv(const KvLayer& layer, int base, Rows keys, Rows values) {
  check_store_kv(layer, base, keys, values);
  if (keys.rows == 0) return;
  const auto [first, count] = put_together([&] { return std::pair(device_base(base), count_of(keys.rows)); });
  queue(&TANDEM_GPU::store_kv, layer, first, fit(keys), fit(values), count);
}

void CudaBackend::rope_store_kv(Rows queries, Rows keys, Rows values, std::span<const Position> positions,
                                const RopeTable& table, const KvLayer& layer, int base) {
  check_rope(queries, layer.head_dim, positions, table);
  check_rope(keys, layer.head_dim, positions, table);
  check_store_kv(layer, base, keys, values);
  if (queries.rows == 0) return;
  const auto [at, first, count] = put_together([&] {
    return std::tuple(positions_.put(positions, staging_, queue_), device_base(base), count_of(queries.rows));
  });
  queue(&TANDEM_GPU::rope_store_kv, fit(queries), fit(keys), fit(values), at, table, layer, first, count);
}

void CudaBackend::attention(Rows out, Rows queries, const KvLayer& layer, int base, const AttentionParams& params,
                            Mask mask) {
  check_attention(out, queries, layer, base, params, mask);
  if (layer.head_dim % 4 != 0 || layer.head_dim > kMaxHeadDim) {
    fail(ErrorKind::model, "{} backend: attention: expected heads of a multiple of 4 elements up to {}, got {}", kName,
         kMaxHeadDim, layer.head_dim);
  }
  if (queries.rows == 0) return;
  AttentionCall call{};
  call.out = fit(out);
  call.queries = fit(queries);
  call.layer = layer;
  call.params = params;
  // A tree's rows see base + 1 places at least and base + rows at most; some splits may be empty for those that are
  // there.
  call.first_split = params.window > 0 ? std::max(0, base + 1 - params.window) / kSplit : 0;
  call.splits = (base + call.queries.rows - 1) / kSplit - call.first_split + 1;
  if (call.splits > 1 && queries.rows <= kMaxPassRows) {
    grow(partial_, partial_bytes(call.splits, kMaxPassRows, queries.cols / layer.head_dim, layer.head_dim));
    call.partial = partial_.as<float>();
  }
  std::tie(call.base, call.ancestors, call.count) = put_together([&] {
    return std::tuple(device_base(base), mask.causal() ? nullptr : ancestors_.put(mask.ancestors, staging_, queue_),
                      count_of(queries.rows));
  });
  queue(&TANDEM_GPU::attention, call);
}

void CudaBackend::gated(Rows out, Rows gate, Rows up, Activation activation) {
  check_same_shape("gated", out, gate);
  check_same_shape("gated", gate, up);
  if (out.rows == 0) return;
  const RowCount count = count_of(out.rows);
  queue(&TANDEM_GPU::gated, fit(out), fit(gate), fit(up), gate_of(activation), count);
}

void CudaBackend::add(Rows y, Rows x) {
  check_same_shape("add", y, x);
  if (y.rows == 0) return;
  queue_rows(&TANDEM_GPU::add, y, fit(x));
}

void CudaBackend::scale(Rows x, float factor) { queue_rows(&TANDEM_GPU::scale, x, factor); }

void CudaBackend::soft_cap(Rows x, float cap) { queue_rows(&TANDEM_GPU::soft_cap, x, cap); }

void CudaBackend::gather_rows(Rows out, Rows x, std::span<const int> rows) {
  check_gather_rows(out, x, rows);
  if (rows.empty()) return;
  pass_.begin_gathered(out.rows);
  const auto [from, count] =
      put_together([&] { return std::pair(rows_.put(rows, staging_, queue_), count_of(out.rows)); });
  x.rows = fit(out).rows;
  queue(&TANDEM_GPU::gather_rows, fit(out), x, from, count);
}

void CudaBackend::move_kv(const KvLayer& layer, int base, std::span<const int> path) {
  if (path.empty()) return;
  listed_path_.assign(1, static_cast<int>(path.size()));
  listed_path_.insert(listed_path_.end(), path.begin(), path.end());
  const auto [first, length] = put_together(
      [&] { return std::pair(device_base(base), path_.put(std::span<const int>(listed_path_), staging_, queue_)); });
  queue(&TANDEM_GPU::move_kv, layer, first, length + 1, length);
}

}  // namespace tandem::TANDEM_GPU
