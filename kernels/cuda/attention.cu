// Attention of a pass's rows over the cache and each other, masked by a tree, in fixed splits of 256 keys.
//
// Threads: a block of 8 warps for a split, a key/value head and 16 of its queries (a row's heads side by side), two a
// warp; with heads beyond 128 elements, whose sums fill twice the registers, 8 queries, one a warp. The block goes
// through chunks of 32 places: it brings their keys and values to shared memory as floats, then each warp scores a
// query against them (a lane a key) and adds up weighted values (a lane every 32nd element). Places of a tree differ
// from row to row, so in chunks that reach into the pass a warp reads its own row's path instead: the ancestors in
// order, as many as the row has. Chunks and splits count places on the row's own path, the sums of a split depend on
// nothing else and splits are merged in order: a row's bits are those of the row alone on its path.
//
// Bytes a row: 4 head_dim a key of an f16 cache, for up to 16 queries at once, so a row of 6 heads a key/value head
// reads each key once and 8 rows three times (the L2 has it then). A split writes head_dim + 2 floats a query.
//
// Lost, by estimate: keys straight from global memory, a lane a key (32 lines a load); scores on tensor cores (the
// queries in f16 would lose 13 bits, and few rows leave them idle); one pass over all keys in a block (2 key/value
// heads would keep 2 of 132 multiprocessors busy).
#include <cmath>

#include "kernels/cuda/activation.cuh"
#include "kernels/cuda/block.cuh"
#include "kernels/cuda/cached_values.cuh"
#include "kernels/cuda/kv.h"
#include "kernels/cuda/unroll.cuh"

namespace tandem::TANDEM_GPU {
namespace {

constexpr int kWarps = 8, kThreads = kWarps * kWarpLanes;
constexpr int kChunk = kWarpLanes;  // places
// kElements: of a head that a lane sums, 4 for heads of up to 128 and 8 for larger ones.
constexpr int kMostElements = kMaxHeadDim / kWarpLanes;
template <int kElements>
constexpr int kWarpQueries = kElements > kMostElements / 2 ? 1 : 2;
template <int kElements>
constexpr int kQueries = kWarps* kWarpQueries<kElements>;

// Softmax so far: the largest score, the sum of weights and the weighted sum of values (Milakov & Gimelshein 2018).
template <int kElements>
struct Softmax {
  float top = -INFINITY, total = 0;
  float values[kElements] = {};  // elements lane, lane + 32, ...
  bool empty = true;             // the same in all lanes

  // Another part of the keys, which come behind.
  __device__ void merge(const Softmax& later) {
    if (later.empty) return;
    if (empty) {
      *this = later;
      return;
    }
    const float new_top = later.top > top ? later.top : top;
    const float mine = std::exp(top - new_top), theirs = std::exp(later.top - new_top);
    total = total * mine + later.total * theirs;
    TANDEM_UNROLL
    for (int i = 0; i < kElements; ++i) values[i] = values[i] * mine + later.values[i] * theirs;
    top = new_top;
  }
};

// The places that a row sees: of its path, [first, end).
struct Span {
  int first, end;
};

__device__ inline Span span_of(const AttentionCall& call, int row) {
  const int own = call.ancestors != nullptr ? __popcll(call.ancestors[row]) : row + 1;
  const int end = *call.base + own, window = call.params.window;
  return {window > 0 && end > window ? end - window : 0, end};
}

// Of the n-th set bit.
__device__ inline int nth_bit(std::uint64_t bits, int n) {
  for (; n > 0; --n) bits &= bits - 1;
  return __ffsll(static_cast<long long>(bits)) - 1;
}

template <int kElements>
struct Shared {
  float *keys, *values;  // [kChunk, stride]
  float* queries;        // [kQueries<kElements>, head_dim]
  float* weights;        // [kWarps, kChunk]
  std::size_t* slots;    // [kWarps, kChunk] offsets of a row's own places
  int stride;

  __device__ Shared(unsigned char* memory, int head_dim) : stride(head_dim + 4) {
    slots = reinterpret_cast<std::size_t*>(memory);
    keys = reinterpret_cast<float*>(slots + kWarps * kChunk);
    values = keys + kChunk * stride;
    queries = values + kChunk * stride;
    weights = queries + kQueries<kElements> * head_dim;
  }
  static constexpr std::size_t bytes(int head_dim) {
    return sizeof(std::size_t) * kWarps * kChunk +
           sizeof(float) * (2 * kChunk * (head_dim + 4) + kQueries<kElements> * head_dim + kWarps * kChunk);
  }
};

__device__ inline float dot_four(float4 a, float4 b, float4& sums) {
  sums = {fmaf(a.x, b.x, sums.x), fmaf(a.y, b.y, sums.y), fmaf(a.z, b.z, sums.z), fmaf(a.w, b.w, sums.w)};
  return (sums.x + sums.y) + (sums.z + sums.w);
}

// One query against the places of a chunk that it sees, [first, end) within the chunk. key(i): elements i .. i + 3 of
// this lane's key; value(place, i): element i of any.
template <int kElements, typename Key, typename Value>
__device__ inline void attend(Softmax<kElements>& state, const AttentionCall& call, const float* query, float* weights,
                              int first, int end, const Key& key, const Value& value) {
  const int lane = static_cast<int>(threadIdx.x % kWarpLanes), head_dim = call.layer.head_dim;
  const bool visible = lane >= first && lane < end;
  float score = -INFINITY;
  if (visible) {
    float4 sums{};
    float dot = 0;
    TANDEM_UNROLL_BY(2)
    for (int i = 0; i < head_dim; i += 4) dot = dot_four(*reinterpret_cast<const float4*>(query + i), key(i), sums);
    score = dot * call.params.scale;
    if (call.params.soft_cap > 0) score = capped(score, call.params.soft_cap);
  }
  const float chunk_top = warp_max(score), top = chunk_top > state.top ? chunk_top : state.top;
  const float keep = state.empty ? 0.f : std::exp(state.top - top);
  const float weight = visible ? std::exp(score - top) : 0.f;
  weights[lane] = weight;
  state.total = state.total * keep + warp_sum(weight);  // its exchanges order the weights before they are read
  __syncwarp();
  TANDEM_UNROLL
  for (int n = 0; n < kElements; ++n) state.values[n] *= keep;
  TANDEM_UNROLL_BY(2)
  for (int place = first; place < end; ++place) {
    const float by = weights[place];
    TANDEM_UNROLL
    for (int n = 0; n < kElements; ++n) {
      const int i = lane + kWarpLanes * n;
      if (i < head_dim) state.values[n] = fmaf(by, value(place, i), state.values[n]);
    }
  }
  __syncwarp();  // all have read the weights
  state.top = top;
  state.empty = false;
}

// Brings places [first, end) of the chunk that starts there to shared memory.
template <KvType T, int kElements>
__device__ inline void stage(const Shared<kElements>& shared, const KvLayer& layer, int kv_head, int first, int end) {
  const int fours = layer.head_dim / 4;
  for (int item = static_cast<int>(threadIdx.x); item < (end - first) * fours; item += kThreads) {
    const int place = item / fours, i = item % fours * 4;
    const std::size_t at = layer.offset(kv_head, first + place);
    *reinterpret_cast<float4*>(shared.keys + place * shared.stride + i) = read_four<T>(layer.keys + at, i);
    *reinterpret_cast<float4*>(shared.values + place * shared.stride + i) = read_four<T>(layer.values + at, i);
  }
}

struct Query {
  int index, row;  // index: row * heads + head
  Span span;
  bool exists;
};

template <KvType T, int kElements>
class BlockAttention {
 public:
  static constexpr int kOfWarp = kWarpQueries<kElements>, kOfBlock = kQueries<kElements>;
  using State = Softmax<kElements>;

  __device__ BlockAttention(const AttentionCall& call, unsigned char* memory)
      : call_(call), shared_(memory, call.layer.head_dim), base_(*call.base) {
    const int heads = call.queries.cols / call.layer.head_dim, group = heads / call.layer.kv_heads;
    kv_head_ = static_cast<int>(blockIdx.y);
    const int first = static_cast<int>(blockIdx.z) * kOfBlock, count = call.count.of(call.queries.rows) * group;
    for (int n = 0; n < kOfWarp; ++n) {
      const int number = first + kOfWarp * static_cast<int>(threadIdx.x / kWarpLanes) + n;
      Query& query = queries_[n];
      query.exists = number < count;
      query.row = query.exists ? number / group : 0;
      query.index = query.row * heads + kv_head_ * group + number % group;
      query.span = span_of(call, query.row);
    }
    const int last = first + kOfBlock < count ? first + kOfBlock : count;
    reach_ = span_of(call, first / group);
    for (int row = first / group; row <= (last - 1) / group; ++row) {
      const Span span = span_of(call, row);
      reach_ = {span.first < reach_.first ? span.first : reach_.first, span.end > reach_.end ? span.end : reach_.end};
    }
    load_queries(first, last, group);
  }

  __device__ void run_split(int split, State (&states)[kOfWarp]) {
    for (int chunk = split * kSplit; chunk < (split + 1) * kSplit; chunk += kChunk) {
      if (chunk + kChunk <= reach_.first || chunk >= reach_.end) continue;
      const bool shared = call_.ancestors == nullptr || chunk + kChunk <= base_;
      if (shared) {
        __syncthreads();  // all are done with the chunk before
        stage<T>(shared_, call_.layer, kv_head_, chunk, chunk + kChunk < reach_.end ? chunk + kChunk : reach_.end);
        __syncthreads();
      }
      TANDEM_UNROLL
      for (int n = 0; n < kOfWarp; ++n) {
        const Query& query = queries_[n];
        const int first = query.span.first > chunk ? query.span.first - chunk : 0,
                  end = query.span.end < chunk + kChunk ? query.span.end - chunk : kChunk;
        if (!query.exists || first >= end) continue;
        shared ? attend_shared(states[n], n, first, end) : attend_path(states[n], n, chunk, first, end);
      }
    }
  }

  __device__ const Query& query(int n) const { return queries_[n]; }

 private:
  __device__ void load_queries(int first, int last, int group) {
    const int head_dim = call_.layer.head_dim;
    for (int item = static_cast<int>(threadIdx.x); item < (last - first) * head_dim; item += kThreads) {
      const int number = first + item / head_dim, head = kv_head_ * group + number % group;
      shared_.queries[item] = call_.queries.row(number / group)[head * head_dim + item % head_dim];
    }
    __syncthreads();
  }
  __device__ const float* query_values(int n) const {
    return shared_.queries + (kOfWarp * static_cast<int>(threadIdx.x / kWarpLanes) + n) * call_.layer.head_dim;
  }
  __device__ float* weights() const { return shared_.weights + threadIdx.x / kWarpLanes * kChunk; }

  __device__ void attend_shared(State& state, int n, int first, int end) const {
    const float* own = shared_.keys + static_cast<int>(threadIdx.x % kWarpLanes) * shared_.stride;
    attend(
        state, call_, query_values(n), weights(), first, end,
        [&](int i) { return *reinterpret_cast<const float4*>(own + i); },
        [&](int place, int i) { return shared_.values[place * shared_.stride + i]; });
  }
  __device__ void attend_path(State& state, int n, int chunk, int first, int end) const {
    const int lane = static_cast<int>(threadIdx.x % kWarpLanes), step = chunk + lane - base_;
    std::size_t* const slots = shared_.slots + threadIdx.x / kWarpLanes * kChunk;
    const int place =
        lane < end ? (step < 0 ? chunk + lane : base_ + nth_bit(call_.ancestors[queries_[n].row], step)) : 0;
    slots[lane] = call_.layer.offset(kv_head_, place);
    __syncwarp();
    const std::byte* own = call_.layer.keys + slots[lane];
    attend(
        state, call_, query_values(n), weights(), first, end, [&](int i) { return read_four<T>(own, i); },
        [&](int other, int i) { return read_element<T>(call_.layer.values + slots[other], i); });
  }

  const AttentionCall& call_;
  Shared<kElements> shared_;
  int base_, kv_head_;
  Query queries_[kOfWarp];
  Span reach_;  // of all queries of the block
};

template <int kElements>
__device__ inline void write_result(const AttentionCall& call, const Softmax<kElements>& state, int index) {
  const int head_dim = call.layer.head_dim, heads = call.queries.cols / head_dim;
  float* const to = call.out.row(index / heads) + index % heads * head_dim;
  TANDEM_UNROLL
  for (int n = 0; n < kElements; ++n) {
    const int i = static_cast<int>(threadIdx.x % kWarpLanes) + kWarpLanes * n;
    if (i < head_dim) to[i] = state.values[n] / state.total;
  }
}

__device__ inline float* partial_of(const AttentionCall& call, int split, int index) {
  const int head_dim = call.layer.head_dim, heads = call.queries.cols / head_dim;
  return call.partial + (static_cast<std::size_t>(split) * call.queries.rows * heads + index) * (head_dim + 2);
}

// On a multiprocessor at least; where 128 registers a thread are too few (q8_0 in large heads), one.
template <KvType T, int kElements>
[[maybe_unused]] constexpr int kBlocks = (T == KvType::q8_0 && kElements == kMostElements) ? 1 : 2;

template <KvType T, int kElements>
__global__ void __launch_bounds__(kThreads, kBlocks<T, kElements>) attention_kernel(AttentionCall call) {
  constexpr int kOfWarp = kWarpQueries<kElements>;
  DYNAMIC_SHARED(unsigned char, memory);
  const int group = call.queries.cols / call.layer.head_dim / call.layer.kv_heads;
  if (static_cast<int>(blockIdx.z) * kQueries<kElements> >= call.count.of(call.queries.rows) * group) return;
  BlockAttention<T, kElements> block(call, memory);
  Softmax<kElements> all[kOfWarp];
  const int first = call.partial != nullptr ? static_cast<int>(blockIdx.x) : 0,
            end = call.partial != nullptr ? first + 1 : call.splits;
  for (int split = first; split < end; ++split) {
    Softmax<kElements> part[kOfWarp];
    block.run_split(call.first_split + split, part);
    TANDEM_UNROLL
    for (int n = 0; n < kOfWarp; ++n) all[n].merge(part[n]);
  }
  const int lane = static_cast<int>(threadIdx.x % kWarpLanes);
  TANDEM_UNROLL
  for (int n = 0; n < kOfWarp; ++n) {
    if (!block.query(n).exists) continue;
    if (call.partial == nullptr) {
      write_result(call, all[n], block.query(n).index);
      continue;
    }
    float* const to = partial_of(call, first, block.query(n).index);
    if (lane == 0) {
      to[0] = all[n].top;
      to[1] = all[n].empty ? -1.f : all[n].total;  // a sum of weights is never negative
    }
    TANDEM_UNROLL
    for (int k = 0; k < kElements; ++k) {
      if (lane + kWarpLanes * k < call.layer.head_dim) to[2 + lane + kWarpLanes * k] = all[n].values[k];
    }
  }
}

// A warp for each query.
__global__ void merge_splits_kernel(AttentionCall call) {
  const int index = static_cast<int>(blockIdx.x * kWarps + threadIdx.x / kWarpLanes),
            lane = static_cast<int>(threadIdx.x % kWarpLanes), heads = call.queries.cols / call.layer.head_dim;
  if (index >= call.count.of(call.queries.rows) * heads) return;
  Softmax<kMostElements> all;
  for (int split = 0; split < call.splits; ++split) {
    const float* const from = partial_of(call, split, index);
    Softmax<kMostElements> part;
    part.top = from[0];
    part.total = from[1];
    part.empty = part.total == -1.f;
    TANDEM_UNROLL
    for (int k = 0; k < kMostElements; ++k) {
      if (lane + kWarpLanes * k < call.layer.head_dim) part.values[k] = from[2 + lane + kWarpLanes * k];
    }
    all.merge(part);
  }
  write_result(call, all, index);
}

template <KvType T, int kElements>
void launch_elements(const AttentionCall& call, cudaStream_t stream) {
  const int heads = call.queries.cols / call.layer.head_dim, group = heads / call.layer.kv_heads;
  const dim3 grid(call.partial != nullptr ? call.splits : 1, call.layer.kv_heads,
                  (call.queries.rows * group + kQueries<kElements> - 1) / kQueries<kElements>);
  launch(attention_kernel<T, kElements>, grid, dim3(kThreads), Shared<kElements>::bytes(call.layer.head_dim), stream,
         call);
  if (call.partial != nullptr) {
    const int queries = call.queries.rows * heads;
    launch(merge_splits_kernel, dim3((queries + kWarps - 1) / kWarps), dim3(kThreads), 0, stream, call);
  }
}

template <KvType T>
void launch_attention(const AttentionCall& call, cudaStream_t stream) {
  constexpr int kFew = kMostElements / 2;
  call.layer.head_dim <= kFew* kWarpLanes ? launch_elements<T, kFew>(call, stream)
                                          : launch_elements<T, kMostElements>(call, stream);
}

}  // namespace

void attention(const AttentionCall& call, cudaStream_t stream) {
  switch (call.layer.type) {
    case KvType::f32:
      return launch_attention<KvType::f32>(call, stream);
    case KvType::f16:
      return launch_attention<KvType::f16>(call, stream);
    case KvType::q8_0:
      return launch_attention<KvType::q8_0>(call, stream);
  }
}

}  // namespace tandem::TANDEM_GPU
