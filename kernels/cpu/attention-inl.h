// Softmax attention of the query heads that share a key/value head, for up to eight rows.
//
// Thread mapping: a task is (key/value head, rows, some of its query heads); tasks are drawn from a counter. A task
// walks its keys in chunks of 64 places of the path. Half a chunk at a time is converted for all its queries: keys
// transposed to [head_dim][32], so that lanes are keys and no score needs a sum across lanes, values to [32][head_dim].
// Bytes read: 2 x head_dim x 2 a key (f16), 2 x head_dim x 34/32 (q8_0). A query's arithmetic is fixed by its own path:
// score = one FMA chain over head_dim, chunk by chunk the online softmax of Milakov & Gimelshein (2018) in f32, values
// added key by key; blocks of queries only share the loads. Lost: converting whole chunks, 64 KB of keys and values in
// f32, which L1 does not hold: 4.4 us a chunk for one row of six heads of 128 (Xeon, family 6 model 207).
#pragma once
#include "kernels/cpu/exp-inl.h"
#include "kernels/cpu/kernel_table.h"

namespace tandem::cpu {
namespace {

constexpr int kKeyBlock = 32;  // keys converted at a time

// The task's scratch memory, cut up.
struct AttentionState {
  int padded;        // head_dim rounded up to 16
  float* converted;  // keys [padded][32], then values [32][padded]
  float* queries;    // [queries][padded], scaled
  float* sums;       // [queries][padded]
  float* weights;    // [queries][64]
  float* peak;       // [queries] largest score so far
  float* mass;       // [queries] sum of the weights so far
  float* factor;     // [queries] what the sums of earlier chunks are multiplied by
};

struct KeyRange {
  int low, high;  // places of a chunk that a row sees
};

// Queries [first, last) of the task, which see the same places of a chunk.
struct QueryRun {
  int first, last;
  KeyRange range;
};
struct ChunkPlan {
  int slots[kAttentionChunk];
  int count;  // keys
  QueryRun runs[kAttentionRows];
  int run_count;
};

AttentionState cut_scratch(const AttentionTask& task) {
  AttentionState s;
  const std::ptrdiff_t queries = static_cast<std::ptrdiff_t>(task.heads) * kAttentionRows;
  s.padded = (task.head_dim + 15) / 16 * 16;
  s.converted = task.scratch;
  s.queries = s.converted + s.padded * kKeyBlock;
  s.sums = s.queries + queries * s.padded;
  s.weights = s.sums + queries * s.padded;
  s.peak = s.weights + queries * kAttentionChunk;
  s.mass = s.peak + queries;
  s.factor = s.mass + queries;
  return s;
}

void start_queries(const AttentionTask& task, const AttentionState& s) {
  int q = 0;
  for (int row = task.first_row; row < task.last_row; ++row) {
    for (int h = 0; h < task.heads; ++h, ++q) {
      const float* from = task.queries + row * task.query_stride + h * task.head_dim;
      float* to = s.queries + q * s.padded;
      for (int d = 0; d < task.head_dim; ++d) to[d] = from[d] * task.scale;
      std::memset(s.sums + q * s.padded, 0, sizeof(float) * static_cast<std::size_t>(s.padded));
      s.peak[q] = -__builtin_inff();
      s.mass[q] = 0;
    }
  }
}

// Up to 16 elements of a cache row from element d on.
template <KvType kType>
[[gnu::always_inline]] inline F32x16 load_cache(const std::uint8_t* row, int d, int count) {
  if constexpr (kType == KvType::f16) {
    return count >= 16 ? load_half(row + 2 * d) : load_half_first(row + 2 * d, count);
  }
  if constexpr (kType == KvType::q8_0) {  // whole blocks; an int8 times an f16 is exact
    const std::uint8_t* block = row + d / kKvBlock * kKvBlockBytes;
    return mul(load_int8(block + 2 + d % kKvBlock), splat_half(block));
  }
  const float* p = reinterpret_cast<const float*>(row) + d;
  return count >= 16 ? load(p) : load_first(p, count);
}

// Keys of 16 slots, elements [d, d + 16), to 16 columns of the converted keys. kWhole: all slots and elements exist.
template <KvType kType, bool kWhole>
[[gnu::always_inline]] inline void convert_tile(const std::uint8_t* const* rows, int d, int slots, int elements,
                                                float* to) {
  F32x16 v[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) {
    v[i] = kWhole ? load_cache<kType>(rows[i], d, 16) : i < slots ? load_cache<kType>(rows[i], d, elements) : zeros();
  }
  transpose(v);
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) store(to + i * kKeyBlock, v[i]);
}

// Keys of places [start, start + 32); places beyond count become zeros.
template <KvType kType>
void convert_keys(const AttentionTask& task, const AttentionState& s, const ChunkPlan& plan, int start) {
  for (int j = 0; j < kKeyBlock; j += 16) {
    const std::uint8_t* rows[16];
    const int left = plan.count - start - j;
    for (int i = 0; i < 16; ++i) rows[i] = task.keys + (i < left ? plan.slots[start + j + i] * task.slot_bytes : 0);
    for (int d = 0; d < s.padded; d += 16) {
      const int elements = task.head_dim - d;
      float* to = s.converted + d * kKeyBlock + j;
      if (left >= 16 && elements >= 16) {
        convert_tile<kType, true>(rows, d, 16, 16, to);
      } else {
        convert_tile<kType, false>(rows, d, left, elements, to);
      }
    }
  }
}

template <KvType kType>
void convert_values(const AttentionTask& task, const AttentionState& s, const ChunkPlan& plan, int start) {
  const int end = plan.count - start < kKeyBlock ? plan.count - start : kKeyBlock;
  for (int j = 0; j < end; ++j) {
    const std::uint8_t* row = task.values + plan.slots[start + j] * task.slot_bytes;
    float* to = s.converted + j * s.padded;
    int d = 0;
    for (; d + 16 <= task.head_dim; d += 16) store(to + d, load_cache<kType>(row, d, 16));
    if (d < task.head_dim) store(to + d, load_cache<kType>(row, d, task.head_dim - d));
  }
}

// weights[q][start ..] = query q . the 32 converted keys
template <int N>
void score_queries(const AttentionTask& task, const AttentionState& s, int q, int start) {
  const float* x = s.queries + q * s.padded;
  F32x16 acc[N][2];
#pragma GCC unroll 8
  for (int i = 0; i < N; ++i) acc[i][0] = acc[i][1] = zeros();
  for (int d = 0; d < task.head_dim; ++d) {
    const F32x16 k0 = load(s.converted + d * kKeyBlock), k1 = load(s.converted + d * kKeyBlock + 16);
#pragma GCC unroll 8
    for (int i = 0; i < N; ++i) {
      const F32x16 y = splat(x[i * s.padded + d]);
      acc[i][0] = fma(y, k0, acc[i][0]);
      acc[i][1] = fma(y, k1, acc[i][1]);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < N; ++i) {
    float* to = s.weights + (q + i) * kAttentionChunk + start;
    store(to, acc[i][0]);
    store(to + 16, acc[i][1]);
  }
}

// Scores to weights exp(score - peak), and the factor for what was summed under the old peak.
void softmax_step(const AttentionState& s, int q, KeyRange range) {
  float* w = s.weights + q * kAttentionChunk;
  F32x16 v[4];
  for (int k = 0; k < 4; ++k)
    v[k] = within(load(w + 16 * k), range.low - 16 * k, range.high - 16 * k, -__builtin_inff());
  const float chunk_peak = reduce_max(max(max(v[0], v[1]), max(v[2], v[3])));
  const float peak = chunk_peak > s.peak[q] ? chunk_peak : s.peak[q];
  for (int k = 0; k < 4; ++k) {
    v[k] = within(exp_lanes(sub(v[k], splat(peak))), range.low - 16 * k, range.high - 16 * k, 0.f);
    store(w + 16 * k, v[k]);
  }
  float factor[16];
  store(factor, exp_lanes(splat(s.peak[q] - peak)));
  s.mass[q] = s.mass[q] * factor[0] + reduce_add(add(add(v[0], v[1]), add(v[2], v[3])));
  s.peak[q] = peak;
  s.factor[q] = factor[0];
}

// sums[q] += weights[q] . the 32 converted values that lie in `range`, D vectors of head_dim at a time. The first
// values of a chunk find the sums multiplied by the factor.
template <int N, int D>
void add_values(const AttentionState& s, int q, int d, int start, KeyRange range) {
  F32x16 acc[N][D];
#pragma GCC unroll 4
  for (int i = 0; i < N; ++i) {
#pragma GCC unroll 4
    for (int k = 0; k < D; ++k) {
      acc[i][k] = load(s.sums + (q + i) * s.padded + d + 16 * k);
      if (start == 0) acc[i][k] = mul(acc[i][k], splat(s.factor[q + i]));
    }
  }
  const float* w = s.weights + q * kAttentionChunk;
  const int low = range.low > start ? range.low : start;
  const int high = range.high < start + kKeyBlock ? range.high : start + kKeyBlock;
  for (int j = low; j < high; ++j) {
    const float* values = s.converted + (j - start) * s.padded + d;
    F32x16 v[D];
#pragma GCC unroll 4
    for (int k = 0; k < D; ++k) v[k] = load(values + 16 * k);
#pragma GCC unroll 4
    for (int i = 0; i < N; ++i) {
      const F32x16 y = splat(w[i * kAttentionChunk + j]);
#pragma GCC unroll 4
      for (int k = 0; k < D; ++k) acc[i][k] = fma(y, v[k], acc[i][k]);
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < N; ++i) {
#pragma GCC unroll 4
    for (int k = 0; k < D; ++k) store(s.sums + (q + i) * s.padded + d + 16 * k, acc[i][k]);
  }
}

template <int N>
void add_all_values(const AttentionState& s, int q, int start, KeyRange range) {
  int d = 0;
  for (; d + 64 <= s.padded; d += 64) add_values<N, 4>(s, q, d, start, range);
  for (; d < s.padded; d += 16) add_values<N, 1>(s, q, d, start, range);
}

// Splits queries [first, last) evenly into blocks of at most kMost: work(first query, count).
template <int kMost, typename Work>
[[gnu::always_inline]] inline void in_blocks(int first, int last, const Work& work) {
  const int count = last - first, parts = (count + kMost - 1) / kMost;
  for (int p = 0; p < parts; ++p) work(first + count * p / parts, count * (p + 1) / parts - count * p / parts);
}

void score_run(const AttentionTask& task, const AttentionState& s, const QueryRun& run, int start) {
  in_blocks<8>(run.first, run.last, [&](int q, int count) {
    switch (count) {
      case 1:
        return score_queries<1>(task, s, q, start);
      case 2:
        return score_queries<2>(task, s, q, start);
      case 3:
        return score_queries<3>(task, s, q, start);
      case 4:
        return score_queries<4>(task, s, q, start);
      case 5:
        return score_queries<5>(task, s, q, start);
      case 6:
        return score_queries<6>(task, s, q, start);
      case 7:
        return score_queries<7>(task, s, q, start);
      default:
        return score_queries<8>(task, s, q, start);
    }
  });
}

void add_run(const AttentionState& s, const QueryRun& run, int start) {
  in_blocks<4>(run.first, run.last, [&](int q, int count) {
    switch (count) {
      case 1:
        return add_all_values<1>(s, q, start, run.range);
      case 2:
        return add_all_values<2>(s, q, start, run.range);
      case 3:
        return add_all_values<3>(s, q, start, run.range);
      default:
        return add_all_values<4>(s, q, start, run.range);
    }
  });
}

template <KvType kType>
void attend_chunk(const AttentionTask& task, const AttentionState& s, const ChunkPlan& plan) {
  for (int start = 0; start < plan.count; start += kKeyBlock) {
    convert_keys<kType>(task, s, plan, start);
    for (int r = 0; r < plan.run_count; ++r) score_run(task, s, plan.runs[r], start);
  }
  for (int r = 0; r < plan.run_count; ++r) {
    for (int q = plan.runs[r].first; q < plan.runs[r].last; ++q) softmax_step(s, q, plan.runs[r].range);
  }
  for (int start = 0; start < plan.count; start += kKeyBlock) {
    convert_values<kType>(task, s, plan, start);
    for (int r = 0; r < plan.run_count; ++r) add_run(s, plan.runs[r], start);
  }
}

// Places of the chunk that starts at `start`, of a path of `length` keys whose last `window` are visible (0: all).
[[gnu::always_inline]] inline KeyRange visible(int start, int length, int window) {
  const int low = window > 0 && length - window > start ? length - window - start : 0;
  const int high = length - start < kAttentionChunk ? length - start : kAttentionChunk;
  return {low, high};
}

[[gnu::always_inline]] inline int path_length(const AttentionTask& task, int row) {
  return task.base + (task.ancestors ? __builtin_popcountll(task.ancestors[row]) : row + 1);
}

// The slots of a row's path from place `start` on: the cache, then its ancestors (or all rows) in the order of the
// pass.
int path_slots(const AttentionTask& task, int row, int start, int length, int* slots) {
  int count = 0;
  for (int place = start; place < length && count < kAttentionChunk && (place < task.base || !task.ancestors);
       ++place) {
    slots[count++] = place;
  }
  if (!task.ancestors || start + count >= length || count == kAttentionChunk) return count;
  std::uint64_t left = task.ancestors[row];
  for (int skip = start - task.base; skip > 0; --skip) left &= left - 1;
  for (; left != 0 && count < kAttentionChunk; left &= left - 1) slots[count++] = task.base + __builtin_ctzll(left);
  return count;
}

// The chunk at `start` of the path of the last of rows [first, last), for all of these rows.
void attend_rows(const AttentionTask& task, const AttentionState& s, int first, int last, int start) {
  ChunkPlan plan;
  plan.run_count = 0;
  for (int row = first; row < last; ++row) {
    const KeyRange range = visible(start, path_length(task, row), task.window);
    if (range.low >= range.high) continue;
    const int q = (row - task.first_row) * task.heads;
    QueryRun* before = plan.run_count > 0 ? &plan.runs[plan.run_count - 1] : nullptr;
    if (before && before->last == q && before->range.low == range.low && before->range.high == range.high) {
      before->last = q + task.heads;
    } else {
      plan.runs[plan.run_count++] = {q, q + task.heads, range};
    }
  }
  if (plan.run_count == 0) return;
  plan.count = path_slots(task, last - 1, start, path_length(task, last - 1), plan.slots);
  switch (task.type) {
    case KvType::f32:
      return attend_chunk<KvType::f32>(task, s, plan);
    case KvType::f16:
      return attend_chunk<KvType::f16>(task, s, plan);
    case KvType::q8_0:
      return attend_chunk<KvType::q8_0>(task, s, plan);
  }
}

void attention(const AttentionTask& task) {
  const AttentionState s = cut_scratch(task);
  start_queries(task, s);
  // Chunks that hold the same keys for all rows: those of the cache, and in a causal pass all.
  const int last = task.last_row - 1;
  const int shared = task.ancestors ? task.base / kAttentionChunk * kAttentionChunk : path_length(task, last);
  for (int start = 0; start < shared; start += kAttentionChunk)
    attend_rows(task, s, task.first_row, task.last_row, start);
  for (int row = task.first_row; row < task.last_row; ++row) {
    for (int start = shared; start < path_length(task, row); start += kAttentionChunk) {
      attend_rows(task, s, row, row + 1, start);
    }
  }
  int q = 0;
  for (int row = task.first_row; row < task.last_row; ++row) {
    for (int h = 0; h < task.heads; ++h, ++q) {
      float* out = task.out + row * task.out_stride + h * task.head_dim;
      for (int d = 0; d < task.head_dim; ++d) out[d] = s.sums[q * s.padded + d] / s.mass[q];
    }
  }
}

}  // namespace
}  // namespace tandem::cpu
