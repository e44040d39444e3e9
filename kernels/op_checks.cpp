#include "kernels/op_checks.h"

#include "src/base/error.h"

namespace tandem {

void check_same_shape(std::string_view op, Rows a, Rows b) {
  if (a.rows != b.rows || a.cols != b.cols) {
    fail(ErrorKind::model, "{}: expected equal shapes, got [{}, {}] and [{}, {}]", op, a.rows, a.cols, b.rows, b.cols);
  }
}

void check_embed(Rows out, const Weight& table, std::span<const TokenId> tokens) {
  if (out.cols != table.cols || out.rows != static_cast<int>(tokens.size())) {
    fail(ErrorKind::model, "embed: expected a lookup table [vocabulary, {}] and {} rows, got [{}, {}] for {} tokens",
         out.cols, out.rows, table.rows, table.cols, tokens.size());
  }
  for (const TokenId token : tokens) {
    if (token < 0 || token >= table.rows) {
      fail(ErrorKind::input, "embed: expected a token below {}, got {}", table.rows, token);
    }
  }
}

void check_matmul(const Projection& projection, Rows x) {
  const Weight& w = *projection.weight;
  if (w.cols != x.cols || w.rows != projection.out.cols || projection.out.rows != x.rows) {
    fail(ErrorKind::model,
         "matmul: expected x [m, {}] and out [m, {}] for a weight [{}, {}], got x [{}, {}], out [{}, {}]", w.cols,
         w.rows, w.rows, w.cols, x.rows, x.cols, projection.out.rows, projection.out.cols);
  }
}

void check_gated_matmul(const Projection& gate, const Projection& up) {
  if (gate.out.cols != up.out.cols) {
    fail(ErrorKind::model, "gated_matmul: expected as many outputs of gate and up, got {} and {}", gate.out.cols,
         up.out.cols);
  }
}

void check_rope(Rows heads, int head_dim, std::span<const Position> positions, const RopeTable& table) {
  if (head_dim <= 0 || heads.cols % head_dim != 0 || table.dims > head_dim || table.dims % 2 != 0 ||
      heads.rows != static_cast<int>(positions.size())) {
    fail(ErrorKind::model, "rope: expected whole heads of {} with {} rotated and {} positions, got [{}, {}]", head_dim,
         table.dims, positions.size(), heads.rows, heads.cols);
  }
}

void check_store_kv(const KvLayer& layer, int base, Rows keys, Rows values) {
  check_same_shape("store_kv", keys, values);
  if (keys.cols != layer.kv_heads * layer.head_dim || !layer.has_room(base, keys.rows)) {
    fail(ErrorKind::model, "store_kv: expected {} columns and places for {} slots{}, got {} columns, places {} to {}",
         layer.kv_heads * layer.head_dim, layer.capacity, layer.ring ? " of a ring" : "", keys.cols, base,
         base + keys.rows);
  }
}

void check_attention(Rows out, Rows queries, const KvLayer& layer, int base, const AttentionParams& params, Mask mask) {
  check_same_shape("attention", out, queries);
  const int rows = queries.rows, heads = layer.head_dim > 0 ? queries.cols / layer.head_dim : 0;
  if (heads <= 0 || queries.cols % layer.head_dim != 0 || heads % layer.kv_heads != 0 || !layer.has_room(base, rows) ||
      (!mask.causal() && static_cast<int>(mask.ancestors.size()) != rows)) {
    fail(ErrorKind::model,
         "attention: expected whole heads of {} in groups of {}, and places for {} slots{}, got [{}, {}] at place {}",
         layer.head_dim, layer.kv_heads, layer.capacity, layer.ring ? " of a ring" : "", rows, queries.cols, base);
  }
  if (layer.ring && (params.window <= 0 || params.window + rows - 1 > layer.capacity)) {
    fail(ErrorKind::model, "attention: expected a ring of slots for a window of {} and {} rows, got {} slots",
         params.window, rows, layer.capacity);
  }
}

void check_gather_rows(Rows out, Rows x, std::span<const int> rows) {
  if (out.rows != static_cast<int>(rows.size()) || out.cols != x.cols) {
    fail(ErrorKind::model, "gather_rows: expected [{}, {}], got [{}, {}]", rows.size(), x.cols, out.rows, out.cols);
  }
}

void check_weight(std::string_view backend, const WeightSource& source) {
  const FormatInfo& info = format_info(source.format);
  if (source.rows <= 0 || source.cols <= 0 || source.cols % info.block_values != 0) {
    fail(ErrorKind::model, "{} backend: weight of format {}: expected whole blocks of {} values a row, got [{}, {}]",
         backend, info.name, info.block_values, source.rows, source.cols);
  }
  const std::size_t expected = encoded_bytes(source.format, static_cast<std::size_t>(source.cols)) * source.rows;
  if (source.data.size() != expected) {
    fail(ErrorKind::model, "{} backend: weight [{}, {}] of format {}: expected {} bytes, got {}", backend, source.rows,
         source.cols, info.name, expected, source.data.size());
  }
}

}  // namespace tandem
