// Softmax attention of the query heads that share a key/value head, for up to eight rows.
//
// Thread mapping: a task is (key/value head, rows, some of its query heads); tasks are drawn from a counter. A task
// walks its keys in chunks of 64 places of the path: scores, softmax, values, each for blocks of queries whose sums
// stay in registers while four cache rows at a time are expanded to f32; where several blocks share a chunk it is
// expanded once, into scratch. Bytes read: 2 x head_dim x 2 a key (f16), 2 x head_dim x 34/32 (q8_0). A query's
// arithmetic is fixed by its own path: score = sixteen FMA chains over head_dim, summed in one order; chunk by chunk
// the online softmax of Milakov & Gimelshein (2018) in f32; values added key by key. Blocks of queries only share the
// loads.
//
// Lost, for one row of six heads of 128 over 512 cached keys, 16.9 us a thread (Xeon, family 6 model 207): keys
// transposed to [head_dim][32] in f32, so that lanes are keys, and values expanded to [32][head_dim], 24 us (but 102
// instead of 128 us for eight rows); both expanded as they lie, 24 us.
#pragma once
#include "kernels/cpu/exp-inl.h"
#include "kernels/cpu/kernel_table.h"

namespace tandem::cpu {
namespace {

// The task's scratch memory, cut up.
struct AttentionState {
  int padded;      // head_dim rounded up to 16
  float* rows;     // [64][padded], cache rows of a chunk that many queries share
  float* queries;  // [queries][padded], scaled, zeros beyond head_dim
  float* sums;     // [queries][padded]
  float* weights;  // [queries][64]
  float* peak;     // [queries] largest score so far
  float* mass;     // [queries] sum of the weights so far
  float* factor;   // [queries] what the sums of earlier chunks are multiplied by
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
  s.rows = task.scratch;
  s.queries = s.rows + kAttentionChunk * s.padded;
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
      for (int d = 0; d < s.padded; ++d) to[d] = d < task.head_dim ? from[d] * task.scale : 0;
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

// Asks for what lies 32 and 128 slots behind a cache row: between bursts of arithmetic a core reads ahead too little.
[[gnu::always_inline]] inline void fetch_ahead(const std::uint8_t* row, std::ptrdiff_t slot_bytes) {
  for (std::ptrdiff_t i = 0; i < slot_bytes; i += 64) {
    prefetch_l1(row + 32 * slot_bytes + i);
    prefetch_l2(row + 128 * slot_bytes + i);
  }
}

// products[i][j] = query i times key j, lane by lane, for four keys.
template <KvType kType, int N>
[[gnu::always_inline]] inline void multiply_keys(const float* x, int padded, const std::uint8_t* const* keys,
                                                 int head_dim, F32x16 (*products)[4]) {
  F32x16 acc[N][4];
#pragma GCC unroll 8
  for (int i = 0; i < N; ++i) acc[i][0] = acc[i][1] = acc[i][2] = acc[i][3] = zeros();
  const auto step = [&](int d, int elements) __attribute__((always_inline)) {
    F32x16 k[4];
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) k[j] = load_cache<kType>(keys[j], d, elements);
#pragma GCC unroll 8
    for (int i = 0; i < N; ++i) {
      const F32x16 y = load(x + i * padded + d);
#pragma GCC unroll 4
      for (int j = 0; j < 4; ++j) acc[i][j] = fma(y, k[j], acc[i][j]);
    }
  };
  int d = 0;
  for (; d + 16 <= head_dim; d += 16) step(d, 16);
  if (d < head_dim) step(d, head_dim - d);
#pragma GCC unroll 8
  for (int i = 0; i < N; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) products[i][j] = acc[i][j];
  }
}

// weights[q ..] = queries . the keys of the chunk; what lies beyond the last key is of no use.
template <KvType kType, int N>
void score_queries(const AttentionTask& task, const AttentionState& s, const ChunkPlan& plan, int q) {
  const bool first = kType != KvType::f32 && q == plan.runs[0].first;
  for (int start = 0; start < plan.count; start += 16) {
    F32x16 products[4][N][4];
    F32x16 all[16];
    for (int k = 0; k < 4; ++k) {
      const std::uint8_t* keys[4];
      for (int j = 0; j < 4; ++j) {
        const int place = start + 4 * k + j;
        keys[j] = task.keys + plan.slots[place < plan.count ? place : plan.count - 1] * task.slot_bytes;
        if (first) fetch_ahead(keys[j], task.slot_bytes);
      }
      multiply_keys<kType, N>(s.queries + q * s.padded, s.padded, keys, task.head_dim, products[k]);
    }
    for (int i = 0; i < N; ++i) {
      for (int j = 0; j < 16; ++j) all[j] = products[j / 4][i][j % 4];
      store(s.weights + (q + i) * kAttentionChunk + start, sum_lanes(all));
    }
  }
}

// Scores to weights exp(score - peak), and the factor for what was summed under the old peak.
void softmax_step(const AttentionState& s, float soft_cap, int q, KeyRange range) {
  float* w = s.weights + q * kAttentionChunk;
  F32x16 v[4];
  for (int k = 0; k < 4; ++k) {
    v[k] = load(w + 16 * k);
    if (soft_cap > 0) v[k] = soft_cap_lanes(v[k], soft_cap);
    v[k] = within(v[k], range.low - 16 * k, range.high - 16 * k, -__builtin_inff());
  }
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

// sums[q] = sums[q] * factor + weights[q] . the values of the chunk in `range`, D vectors of head_dim from d on.
template <KvType kType, int N, int D>
void add_values(const AttentionTask& task, const AttentionState& s, const ChunkPlan& plan, const QueryRun& run, int q,
                int d) {
  const bool first = kType != KvType::f32 && d == 0 && q == plan.runs[0].first;
  const int elements = D > 1 ? 16 : task.head_dim - d;
  F32x16 acc[N][D];
#pragma GCC unroll 8
  for (int i = 0; i < N; ++i) {
#pragma GCC unroll 4
    for (int k = 0; k < D; ++k) acc[i][k] = mul(load(s.sums + (q + i) * s.padded + d + 16 * k), splat(s.factor[q + i]));
  }
  const float* w = s.weights + q * kAttentionChunk;
  for (int j = run.range.low; j < run.range.high; ++j) {
    const std::uint8_t* row = task.values + plan.slots[j] * task.slot_bytes;
    if (first) fetch_ahead(row, task.slot_bytes);
    F32x16 v[D];
#pragma GCC unroll 4
    for (int k = 0; k < D; ++k) v[k] = load_cache<kType>(row, d + 16 * k, elements);
#pragma GCC unroll 8
    for (int i = 0; i < N; ++i) {
      const F32x16 y = splat(w[i * kAttentionChunk + j]);
#pragma GCC unroll 4
      for (int k = 0; k < D; ++k) acc[i][k] = fma(y, v[k], acc[i][k]);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < N; ++i) {
#pragma GCC unroll 4
    for (int k = 0; k < D; ++k) store(s.sums + (q + i) * s.padded + d + 16 * k, acc[i][k]);
  }
}

template <KvType kType, int N>
void add_all_values(const AttentionTask& task, const AttentionState& s, const ChunkPlan& plan, const QueryRun& run,
                    int q) {
  int d = 0;
  for (; d + 64 <= task.head_dim; d += 64) add_values<kType, N, 4>(task, s, plan, run, q, d);
  for (; d < task.head_dim; d += 16) add_values<kType, N, 1>(task, s, plan, run, q, d);
}

template <int N>
struct Count {
  static constexpr int value = N;
};
template <int N, typename Work>
[[gnu::always_inline]] inline void with_count(int count, const Work& work) {
  if constexpr (N > 1) {
    if (count < N) return with_count<N - 1>(count, work);
  }
  work(Count<N>{});
}

// work(first query, their Count) for queries [first, last), split evenly into blocks of at most
// kMost, a constant so that their sums stay in registers.
template <int kMost, typename Work>
[[gnu::always_inline]] inline void in_blocks(int first, int last, const Work& work) {
  const int count = last - first, parts = (count + kMost - 1) / kMost;
  for (int p = 0; p < parts; ++p) {
    const int from = count * p / parts, to = count * (p + 1) / parts;
    with_count<kMost>(to - from, [&](auto n) { work(first + from, n); });
  }
}

template <KvType kType>
void score_chunk(const AttentionTask& task, const AttentionState& s, const ChunkPlan& plan) {
  for (int r = 0; r < plan.run_count; ++r) {
    const QueryRun& run = plan.runs[r];
    in_blocks<kQueryBlock>(run.first, run.last,
                           [&](int q, auto n) { score_queries<kType, n.value>(task, s, plan, q); });
    for (int q = run.first; q < run.last; ++q) softmax_step(s, task.soft_cap, q, run.range);
  }
}

template <KvType kType>
void add_chunk(const AttentionTask& task, const AttentionState& s, const ChunkPlan& plan) {
  for (int r = 0; r < plan.run_count; ++r) {
    const QueryRun& run = plan.runs[r];
    in_blocks<kQueryBlock>(run.first, run.last,
                           [&](int q, auto n) { add_all_values<kType, n.value>(task, s, plan, run, q); });
  }
}

// The cache rows of a chunk's places, expanded to f32 in the scratch.
template <KvType kType>
void expand_rows(const AttentionTask& task, const AttentionState& s, const ChunkPlan& plan, const std::uint8_t* cache) {
  for (int j = 0; j < plan.count; ++j) {
    const std::uint8_t* row = cache + plan.slots[j] * task.slot_bytes;
    fetch_ahead(row, task.slot_bytes);
    float* to = s.rows + j * s.padded;
    int d = 0;
    for (; d + 16 <= task.head_dim; d += 16) store(to + d, load_cache<kType>(row, d, 16));
    if (d < task.head_dim) store(to + d, load_cache<kType>(row, d, task.head_dim - d));
  }
}

// A chunk that several blocks of queries share: its rows are expanded once, which changes no bit.
template <KvType kType>
void attend_expanded(const AttentionTask& task, const AttentionState& s, const ChunkPlan& plan) {
  AttentionTask expanded = task;
  expanded.keys = expanded.values = reinterpret_cast<const std::uint8_t*>(s.rows);
  expanded.slot_bytes = s.padded * static_cast<std::ptrdiff_t>(sizeof(float));
  ChunkPlan in_order = plan;
  for (int j = 0; j < plan.count; ++j) in_order.slots[j] = j;
  expand_rows<kType>(task, s, plan, task.keys);
  score_chunk<KvType::f32>(expanded, s, in_order);
  expand_rows<kType>(task, s, plan, task.values);
  add_chunk<KvType::f32>(expanded, s, in_order);
}

template <KvType kType>
void attend_chunk(const AttentionTask& task, const AttentionState& s, const ChunkPlan& plan) {
  const int queries = plan.runs[plan.run_count - 1].last - plan.runs[0].first;
  if (kType != KvType::f32 && queries > kQueryBlock) return attend_expanded<kType>(task, s, plan);
  score_chunk<kType>(task, s, plan);
  add_chunk<kType>(task, s, plan);
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
  const auto slot_of = [&](int place) { return task.ring > 0 ? place % task.ring : place; };
  int count = 0, slot = slot_of(start);
  for (int place = start; place < length && count < kAttentionChunk && (place < task.base || !task.ancestors);
       ++place) {
    slots[count++] = slot;
    if (++slot == task.ring) slot = 0;
  }
  if (!task.ancestors || start + count >= length || count == kAttentionChunk) return count;
  std::uint64_t left = task.ancestors[row];
  for (int skip = start - task.base; skip > 0; --skip) left &= left - 1;
  for (; left != 0 && count < kAttentionChunk; left &= left - 1) {
    slots[count++] = slot_of(task.base + __builtin_ctzll(left));
  }
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
  // No row's path is shorter than this, so no row sees the chunks before `first`.
  const int shortest = task.base + (task.ancestors ? 1 : task.first_row + 1);
  const int first =
      task.window > 0 && shortest > task.window ? (shortest - task.window) / kAttentionChunk * kAttentionChunk : 0;
  for (int start = first; start < shared; start += kAttentionChunk)
    attend_rows(task, s, task.first_row, task.last_row, start);
  for (int row = task.first_row; row < task.last_row; ++row) {
    for (int start = shared > first ? shared : first; start < path_length(task, row); start += kAttentionChunk) {
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
