// Kernels over rows of logits. A row of V logits is read once by argmax (4 V bytes) and twice by gumbel_argmax.
//
// best_kernel: blocks of 256 threads, 4096 tokens each; best_of_row_kernel: one warp a row over the blocks' results.
//   Lost by estimate: CUB's segmented reduction, which has one block a row.
// select_kernel: one block of 1024 threads a row; finds the k-th largest key digit by digit (8 bits a pass, counted in
//   shared memory) and stops as soon as a digit's whole bin is wanted: 3 or 4 of 8 passes on real logits, each 4 V
//   bytes out of L2. Lost by estimate: sorting the row (8 V bytes, eight times out and in); one pass with a private
//   top-k a thread, merged after (registers for k = 40 leave one warp a scheduler).
// arrival_kernel: blocks of 256 threads, 4096 tokens each; a thread takes four neighbours, which share one block of
//   Philox words. first_arrival_kernel: one warp a row over the blocks' results.
// row_keys_kernel, weigh_kernel, unpack_kernel: one thread an entry.
// draw_kernel: one block of 256 threads a row over its sorted candidates.
#include <algorithm>
#include <limits>

#include "kernels/cuda/block.cuh"
#include "kernels/cuda/vocabulary.h"

namespace tandem::TANDEM_GPU {
namespace {

constexpr int kSelectThreads = 1024, kThreads = 256, kTokensOfThread = 16, kChunk = kThreads * kTokensOfThread;
constexpr int kDigits = 256;

// The first of some candidates, with the time at which its token arrives: -ln(u) / weight, exponentially distributed.
// The first to arrive is the draw: argmin of (-ln u) / w is argmax of ln w - ln(-ln u), without the second logarithm.
struct Arrival {
  double time;
  double next;  // of the others: how near they come decides whether roundings could matter
  TokenId token;
};

__device__ inline Arrival never() { return {HUGE_VAL, HUGE_VAL, -1}; }
// Of a token that is a candidate or not as roundings fall.
__device__ inline Arrival undecided() { return {HUGE_VAL, 0, -1}; }

__device__ inline Arrival earlier(const Arrival& a, const Arrival& b) {
  const bool a_wins = b.token < 0 || (a.token >= 0 && (a.time < b.time || (a.time == b.time && a.token < b.token)));
  Arrival first = a_wins ? a : b;
  const Arrival& other = a_wins ? b : a;
  if (other.next < first.next) first.next = other.next;
  if (other.time < first.next) first.next = other.time;
  return first;
}

// What exp, log, products and quotients of a draw may be off by, and far more.
constexpr double kNear = 0x1p-40;

__device__ inline TokenId drawn(const Arrival& first) {
  if (first.token < 0) return -1;
  return first.next <= first.time * (1 + kNear) ? kUndecided : first.token;
}

// The earliest of the warp, in every lane.
__device__ inline Arrival earliest_of_warp(Arrival mine) {
  for (int distance = kWarpLanes / 2; distance > 0; distance /= 2) {
    const Arrival other{__shfl_xor_sync(kWholeWarp, mine.time, distance),
                        __shfl_xor_sync(kWholeWarp, mine.next, distance),
                        __shfl_xor_sync(kWholeWarp, mine.token, distance)};
    mine = earlier(mine, other);
  }
  return mine;
}

// The earliest of the block, in its first thread.
__device__ inline Arrival earliest_of_block(Arrival mine) {
  STATIC_SHARED(Arrival, slots, kThreads / kWarpLanes);
  mine = earliest_of_warp(mine);
  if (threadIdx.x % kWarpLanes == 0) slots[threadIdx.x / kWarpLanes] = mine;
  __syncthreads();
  for (int warp = 1; warp < kThreads / kWarpLanes && threadIdx.x == 0; ++warp) mine = earlier(mine, slots[warp]);
  return mine;
}

// As the host has it: with infinity the best logit would become NaN.
constexpr double rate_of(double temperature) {
  const double rate = 1 / temperature;
  return rate < std::numeric_limits<double>::max() ? rate : std::numeric_limits<double>::max();
}

// Relative to the best logit of the row, so that the largest weight is 1 whatever the temperature; where the best is
// infinite, all others weigh nothing.
__device__ inline double weight_of(float logit, float best, double rate) {
  return logit == best ? 1.0 : exp((double(logit) - double(best)) * rate);
}

__device__ inline Arrival arrival_of(TokenId token, double weight, std::uint32_t word) {
  return weight > 0 ? Arrival{-log(uniform_from_word(word)) / weight, HUGE_VAL, token} : never();
}

// Whether roundings decide if min-p keeps a weight. The largest is exactly 1 everywhere.
__device__ inline bool near_bar(double weight, double min_p, float logit, float best) {
  return min_p > 0 && logit != best && fabs(weight - min_p) <= kNear * min_p;
}

// What one pass over a digit decides.
struct Choice {
  std::uint32_t digit;
  int wanted;  // keys still to be taken from its bin
  int count;   // keys in its bin
};

// By the first warp: the bin in which the wanted-th largest key lies, each lane adding up eight of them from the top.
// Fewer keys than wanted: digit 0, all of whose bins are wanted.
__device__ inline void choose_digit(Choice* choice, const int* histogram, int wanted) {
  constexpr int kBins = kDigits / kWarpLanes;
  const int lane = static_cast<int>(threadIdx.x), top = kDigits - 1 - lane * kBins;
  int mine = 0;
  for (int i = 0; i < kBins; ++i) mine += histogram[top - i];
  int up_to_here = mine;
  for (int distance = 1; distance < kWarpLanes; distance *= 2) {
    const int before = __shfl_up_sync(kWholeWarp, up_to_here, distance);
    if (lane >= distance) up_to_here += before;
  }
  int before = up_to_here - mine;
  const bool last = lane == kWarpLanes - 1;
  if (before >= wanted || (up_to_here < wanted && !last)) return;
  for (int bin = top; bin > top - kBins; --bin) {
    if (before + histogram[bin] >= wanted || bin == 0) {
      *choice = {static_cast<std::uint32_t>(bin), wanted - before, histogram[bin]};
      return;
    }
    before += histogram[bin];
  }
}

// keys [rows, k] = the k largest of each row in any order; behind the last usable one 0.
__global__ void __launch_bounds__(kSelectThreads) select_kernel(std::uint64_t* keys, LogitRows logits, int k) {
  STATIC_SHARED(int, histogram, kDigits);
  STATIC_SHARED(Choice, choice, 1);
  STATIC_SHARED(int, taken, 1);
  const int row = static_cast<int>(blockIdx.x), thread = static_cast<int>(threadIdx.x);
  if (!logits.count.has(row)) return;
  std::uint64_t threshold = 0;  // its digits above `shift` are those of the k-th largest key
  int wanted = k;
  for (int shift = 56; shift >= 0; shift -= 8) {
    if (thread < kDigits) histogram[thread] = 0;
    if (thread == 0) *taken = 0;
    __syncthreads();
    for (int token = thread; token < logits.vocabulary; token += kSelectThreads) {
      const std::uint64_t key = logits.key(row, token);
      if (key != 0 && key >> shift >> 8 == threshold >> shift >> 8) atomicAdd(&histogram[key >> shift & 255], 1);
    }
    __syncthreads();
    if (thread < kWarpLanes) choose_digit(choice, histogram, wanted);
    __syncthreads();
    threshold |= std::uint64_t{choice->digit} << shift;
    wanted = choice->wanted;
    if (choice->count <= wanted) break;
  }
  for (int token = thread; token < logits.vocabulary; token += kSelectThreads) {
    const std::uint64_t key = logits.key(row, token);
    if (key != 0 && key >= threshold) keys[std::int64_t{row} * k + atomicAdd(taken, 1)] = key;
  }
  __syncthreads();
  for (int i = *taken + thread; i < k; i += kSelectThreads) keys[std::int64_t{row} * k + i] = 0;
}

// parts [rows, chunks]: the largest key of each chunk of a row.
__global__ void best_kernel(std::uint64_t* parts, LogitRows logits) {
  const int row = static_cast<int>(blockIdx.y), begin = static_cast<int>(blockIdx.x) * kChunk;
  if (!logits.count.has(row)) return;
  std::uint64_t best = 0;
  for (int i = 0; i < kTokensOfThread; ++i) {
    const TokenId token = begin + i * kThreads + static_cast<int>(threadIdx.x);
    if (token >= logits.vocabulary) break;
    const std::uint64_t key = logits.key(row, token);
    best = key > best ? key : best;
  }
  best = block_max<kThreads>(best);
  if (threadIdx.x == 0) parts[std::int64_t{row} * gridDim.x + blockIdx.x] = best;
}

// ids may be null.
__global__ void best_of_row_kernel(std::uint64_t* best, TokenId* ids, const std::uint64_t* parts, int chunks,
                                   RowCount count) {
  const int row = static_cast<int>(blockIdx.x);
  if (!count.has(row)) return;
  std::uint64_t key = 0;
  for (int i = static_cast<int>(threadIdx.x); i < chunks; i += kWarpLanes) {
    const std::uint64_t part = parts[std::int64_t{row} * chunks + i];
    key = part > key ? part : key;
  }
  key = warp_max(key);
  if (threadIdx.x != 0) return;
  best[row] = key;
  if (ids != nullptr) ids[row] = token_of_key(key);
}

// keys [rows, vocabulary] of all entries.
__global__ void row_keys_kernel(std::uint64_t* keys, LogitRows logits) {
  const int row = static_cast<int>(blockIdx.y), token = static_cast<int>(blockIdx.x * kThreads + threadIdx.x);
  if (token < logits.vocabulary && logits.count.has(row))
    keys[std::int64_t{row} * logits.vocabulary + token] = logits.key(row, token);
}

// values may be null.
__global__ void unpack_kernel(TokenId* ids, float* values, const std::uint64_t* keys, int count) {
  const int i = static_cast<int>(blockIdx.x * kThreads + threadIdx.x);
  if (i >= count) return;
  ids[i] = token_of_key(keys[i]);
  if (values != nullptr) values[i] = logit_of_key(keys[i]);
}

// arrivals [rows, chunks]: the first of each chunk of a row.
__global__ void arrival_kernel(Arrival* arrivals, LogitRows logits, const std::uint64_t* best, double rate,
                               double min_p, Noise noise, const std::uint32_t* positions) {
  const int row = static_cast<int>(blockIdx.y), begin = static_cast<int>(blockIdx.x) * kChunk;
  if (!logits.count.has(row)) return;
  const float top = logit_of_key(best[row]);
  Arrival first = never();
  for (int i = 0; i < kTokensOfThread; i += 4) {
    const TokenId token = begin + i * kThreads + 4 * static_cast<int>(threadIdx.x);
    if (token >= logits.vocabulary) break;
    const std::array<std::uint32_t, 4> words = noise.token_words(positions[row], token);
    for (int j = 0; j < 4 && token + j < logits.vocabulary; ++j) {
      const std::uint64_t key = logits.key(row, token + j);
      if (key == 0) continue;
      const float logit = logit_of_key(key);
      const double weight = weight_of(logit, top, rate);
      if (near_bar(weight, min_p, logit, top)) first = earlier(first, undecided());
      if (weight >= min_p) first = earlier(first, arrival_of(token + j, weight, words[j]));
    }
  }
  first = earliest_of_block(first);
  if (threadIdx.x == 0) arrivals[std::int64_t{row} * gridDim.x + blockIdx.x] = first;
}

__global__ void first_arrival_kernel(TokenId* ids, const Arrival* arrivals, int chunks, RowCount count) {
  const int row = static_cast<int>(blockIdx.x);
  if (!count.has(row)) return;
  Arrival first = never();
  for (int i = static_cast<int>(threadIdx.x); i < chunks; i += kWarpLanes) {
    first = earlier(first, arrivals[std::int64_t{row} * chunks + i]);
  }
  first = earliest_of_warp(first);
  if (threadIdx.x == 0) ids[row] = drawn(first);
}

// Weights in units of 2^-44, so that a row's sum is exact in any order and below 2^64 up to 2^19 tokens.
constexpr double kWeightUnits = 0x1p44;

__global__ void weigh_kernel(std::uint64_t* weights, const std::uint64_t* keys, int rows, int count, double rate,
                             RowCount there) {
  const int i = static_cast<int>(blockIdx.x * kThreads + threadIdx.x);
  if (i >= there.of(rows) * count) return;
  const float best = logit_of_key(keys[i / count * count]);
  weights[i] =
      keys[i] == 0 ? 0 : static_cast<std::uint64_t>(rint(weight_of(logit_of_key(keys[i]), best, rate) * kWeightUnits));
}

// Where top-p cuts a row of sorted candidates, in units of weights. `edge`: what the sums here and on the host, and the
// weights in them, may be off by.
struct Cut {
  double wanted, edge;
};

enum class Side { kept, cut, undecided };

// Whether the host may find two neighbours in the order of logits equal by weight, and so rank them by id.
__device__ inline bool about_equal(std::uint64_t weight, std::uint64_t next) {
  return static_cast<double>(weight - next) <= 2 + kNear * static_cast<double>(weight);
}

// Whether the order of candidates i - 1 and i is the same on the host, as is who stands around them.
__device__ inline bool parted(const std::uint64_t* keys, const std::uint64_t* weights, int i, int count) {
  const auto same_logit = [&](int j) { return keys[j - 1] >> 32 == keys[j] >> 32; };
  if (!about_equal(weights[i - 1], weights[i])) return true;
  for (int j = i; j > 0 && about_equal(weights[j - 1], weights[j]); --j) {
    if (!same_logit(j)) return false;
  }
  for (int j = i + 1; j < count && keys[j] != 0 && about_equal(weights[j - 1], weights[j]); ++j) {
    if (!same_logit(j)) return false;
  }
  return true;
}

// Of candidate i of `count`; `before`: the weight of all that rank before it.
__device__ inline Side side_of(const Cut& cut, int i, double before, const std::uint64_t* keys,
                               const std::uint64_t* weights, int count) {
  if (i == 0 || before <= cut.wanted - cut.edge) return Side::kept;
  if (before < cut.wanted + cut.edge) return Side::undecided;
  const bool first = i == 1 || before - static_cast<double>(weights[i - 1]) < cut.wanted + cut.edge;
  return first && !parted(keys, weights, i, count) ? Side::undecided : Side::cut;
}

// sums: of the weights of all rows laid end to end; what they add up to in front of a row cancels, modulo 2^64.
__global__ void draw_kernel(TokenId* ids, const std::uint64_t* keys, const std::uint64_t* weights,
                            const std::uint64_t* sums, int count, DrawParams params, Noise noise,
                            const std::uint32_t* positions, RowCount there) {
  const int row = static_cast<int>(blockIdx.x);
  if (!there.has(row)) return;
  const std::int64_t start = std::int64_t{row} * count;
  const std::uint64_t in_front = sums[start] - weights[start];
  const double total = static_cast<double>(sums[start + count - 1] - in_front);
  const Cut cut{params.top_p * total, count + total * count * 0x1p-52};
  const float best = logit_of_key(keys[start]);
  Arrival first = never();
  for (int i = static_cast<int>(threadIdx.x); i < count; i += kThreads) {
    const std::uint64_t key = keys[start + i];
    if (key == 0) break;
    const double before = static_cast<double>(sums[start + i] - weights[start + i] - in_front);
    const Side side = params.top_p < 1 ? side_of(cut, i, before, keys + start, weights + start, count) : Side::kept;
    if (side == Side::undecided) first = earlier(first, undecided());
    if (side != Side::kept) break;
    const float logit = logit_of_key(key);
    const double weight = weight_of(logit, best, rate_of(params.temperature));
    if (near_bar(weight, params.min_p, logit, best)) first = earlier(first, undecided());
    if (weight < params.min_p) break;
    const TokenId token = token_of_key(key);
    first = earlier(first, arrival_of(token, weight, noise.token_words(positions[row], token)[token & 3]));
  }
  first = earliest_of_block(first);
  if (threadIdx.x == 0) ids[row] = drawn(first);
}

unsigned blocks_of(std::int64_t entries, int each) { return static_cast<unsigned>((entries + each - 1) / each); }

std::size_t key_bytes(int rows, int count) { return std::size_t(rows) * count * sizeof(std::uint64_t); }

}  // namespace

VocabularyOps::VocabularyOps(int max_rows, int vocabulary, bool whole_rows, cudaStream_t stream)
    : stream_(stream),
      max_keys_(whole_rows ? std::max(vocabulary, kMaxTopK) : kMaxTopK),
      chunks_(blocks_of(vocabulary, kChunk)),
      select_(max_rows, max_keys_, stream),
      best_(key_bytes(max_rows, 1)),
      keys_(key_bytes(max_rows, max_keys_)),
      weights_(key_bytes(max_rows, max_keys_)),
      sums_(key_bytes(max_rows, max_keys_)),
      parts_(key_bytes(max_rows, static_cast<int>(chunks_))),
      arrivals_(std::size_t(max_rows) * chunks_ * sizeof(Arrival)) {}

void VocabularyOps::argmax(TokenId* ids, const LogitRows& logits) { best_keys(ids, logits); }

// best_ [rows] = the largest key of each row.
void VocabularyOps::best_keys(TokenId* ids, const LogitRows& logits) {
  launch(best_kernel, dim3(chunks_, logits.rows), dim3(kThreads), 0, stream_, parts_.as<std::uint64_t>(), logits);
  launch(best_of_row_kernel, dim3(logits.rows), dim3(kWarpLanes), 0, stream_, best_.as<std::uint64_t>(), ids,
         parts_.as<std::uint64_t>(), static_cast<int>(chunks_), logits.count);
}

void VocabularyOps::top_k(TokenId* ids, float* values, const LogitRows& logits, int k) {
  select_keys(logits, k);
  launch(unpack_kernel, dim3(blocks_of(std::int64_t{logits.rows} * k, kThreads)), dim3(kThreads), 0, stream_, ids,
         values, keys_.as<std::uint64_t>(), logits.rows * k);
}

// keys_ [rows, k] = the k largest keys of each row, sorted.
void VocabularyOps::select_keys(const LogitRows& logits, int k) {
  launch(select_kernel, dim3(logits.rows), dim3(kSelectThreads), 0, stream_, keys_.as<std::uint64_t>(), logits, k);
  select_.sort_keys(keys_.as<std::uint64_t>(), logits.rows, k);
}

void VocabularyOps::gumbel_argmax(TokenId* ids, const LogitRows& logits, double temperature, double min_p,
                                  const Noise& noise, const std::uint32_t* positions) {
  best_keys(nullptr, logits);
  launch(arrival_kernel, dim3(chunks_, logits.rows), dim3(kThreads), 0, stream_, arrivals_.as<Arrival>(), logits,
         best_.as<std::uint64_t>(), rate_of(temperature), min_p, noise, positions);
  launch(first_arrival_kernel, dim3(logits.rows), dim3(kWarpLanes), 0, stream_, ids, arrivals_.as<Arrival>(),
         static_cast<int>(chunks_), logits.count);
}

void VocabularyOps::draw(TokenId* ids, const LogitRows& logits, const DrawParams& params, const Noise& noise,
                         const std::uint32_t* positions) {
  if (params.top_k == 0 && params.top_p >= 1) {
    return gumbel_argmax(ids, logits, params.temperature, params.min_p, noise, positions);
  }
  const int count = params.top_k > 0 ? params.top_k : logits.vocabulary;
  auto* const keys = keys_.as<std::uint64_t>();
  if (params.top_k > 0) {
    select_keys(logits, count);
  } else {
    launch(row_keys_kernel, dim3(blocks_of(count, kThreads), logits.rows), dim3(kThreads), 0, stream_, keys, logits);
    select_.sort_keys(keys, logits.rows, count);
  }
  const int entries = logits.rows * count;
  launch(weigh_kernel, dim3(blocks_of(entries, kThreads)), dim3(kThreads), 0, stream_, weights_.as<std::uint64_t>(),
         keys, logits.rows, count, rate_of(params.temperature), logits.count);
  select_.inclusive_sum(sums_.as<std::uint64_t>(), weights_.as<std::uint64_t>(), entries);
  launch(draw_kernel, dim3(logits.rows), dim3(kThreads), 0, stream_, ids, keys, weights_.as<std::uint64_t>(),
         sums_.as<std::uint64_t>(), count, params, noise, positions, logits.count);
}

}  // namespace tandem::TANDEM_GPU
