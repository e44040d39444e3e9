// Kernels over rows of logits. A row of V logits is read once by argmax (CUB, 4 V bytes) and twice by gumbel_argmax.
//
// select_kernel: one block of 1024 threads a row; finds the k-th largest key digit by digit (8 bits a pass, counted in
//   shared memory) and stops as soon as a digit's whole bin is wanted: 3 or 4 of 8 passes on real logits, each 4 V
//   bytes out of L2. Lost by estimate: sorting the row (8 V bytes, eight times out and in); one pass with a private
//   top-k a thread, merged after (registers for k = 40 leave one warp a scheduler).
// arrival_kernel: blocks of 256 threads, 4096 tokens each; a thread takes four neighbours, which share one block of
//   Philox words. first_arrival_kernel: one warp a row over the blocks' results.
// row_keys_kernel, weigh_kernel, unpack_kernel: one thread an entry.
// draw_kernel: one block of 256 threads a row over its sorted candidates.
#include <algorithm>

#include "kernels/cuda/launch.h"
#include "kernels/cuda/vocabulary.h"

namespace tandem::TANDEM_GPU {
namespace {

constexpr int kSelectThreads = 1024, kThreads = 256, kTokensOfThread = 16, kChunk = kThreads * kTokensOfThread;
constexpr int kDigits = 256;

// A candidate with the time at which its token would arrive: -ln(u) / weight, exponentially distributed. The first to
// arrive is the draw: argmin of (-ln u) / w is argmax of ln w - ln(-ln u), without the second logarithm.
struct Arrival {
  double time;
  TokenId token;
};

__device__ inline Arrival never() { return {HUGE_VAL, -1}; }

__device__ inline Arrival earlier(const Arrival& a, const Arrival& b) {
  if (a.token < 0 || b.token < 0) return a.token < 0 ? b : a;
  return a.time < b.time || (a.time == b.time && a.token < b.token) ? a : b;
}

// The earliest of the warp, in every lane.
__device__ inline Arrival earliest_of_warp(Arrival mine) {
  for (int distance = kWarpLanes / 2; distance > 0; distance /= 2) {
    const Arrival other{__shfl_xor_sync(kWholeWarp, mine.time, distance),
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

// Relative to the best logit of the row, so that the largest weight is 1 whatever the temperature; where the best is
// infinite, all others weigh nothing.
__device__ inline double weight_of(float logit, float best, double rate) {
  return logit == best ? 1.0 : exp((double(logit) - double(best)) * rate);
}

__device__ inline Arrival arrival_of(TokenId token, double weight, std::uint32_t word) {
  return weight > 0 ? Arrival{-log(uniform_from_word(word)) / weight, token} : never();
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

// keys [rows, vocabulary] of all entries.
__global__ void row_keys_kernel(std::uint64_t* keys, LogitRows logits) {
  const int row = static_cast<int>(blockIdx.y), token = static_cast<int>(blockIdx.x * kThreads + threadIdx.x);
  if (token < logits.vocabulary) keys[std::int64_t{row} * logits.vocabulary + token] = logits.key(row, token);
}

// values may be null.
__global__ void unpack_kernel(TokenId* ids, float* values, const std::uint64_t* keys, int count) {
  const int i = static_cast<int>(blockIdx.x * kThreads + threadIdx.x);
  if (i >= count) return;
  ids[i] = token_of_key(keys[i]);
  if (values != nullptr) values[i] = logit_of_key(keys[i]);
}

// arrivals [rows, chunks]: the first of each chunk of a row.
__global__ void arrival_kernel(Arrival* arrivals, LogitRows logits, const std::uint64_t* best, double rate, Noise noise,
                               const std::uint32_t* positions) {
  const int row = static_cast<int>(blockIdx.y), begin = static_cast<int>(blockIdx.x) * kChunk;
  const float top = logit_of_key(best[row]);
  Arrival first = never();
  for (int i = 0; i < kTokensOfThread; i += 4) {
    const TokenId token = begin + i * kThreads + 4 * static_cast<int>(threadIdx.x);
    if (token >= logits.vocabulary) break;
    const std::array<std::uint32_t, 4> words = noise.token_words(positions[row], token);
    for (int j = 0; j < 4 && token + j < logits.vocabulary; ++j) {
      const std::uint64_t key = logits.key(row, token + j);
      if (key != 0) first = earlier(first, arrival_of(token + j, weight_of(logit_of_key(key), top, rate), words[j]));
    }
  }
  first = earliest_of_block(first);
  if (threadIdx.x == 0) arrivals[std::int64_t{row} * gridDim.x + blockIdx.x] = first;
}

__global__ void first_arrival_kernel(TokenId* ids, const Arrival* arrivals, int chunks) {
  const int row = static_cast<int>(blockIdx.x);
  Arrival first = never();
  for (int i = static_cast<int>(threadIdx.x); i < chunks; i += kWarpLanes) {
    first = earlier(first, arrivals[std::int64_t{row} * chunks + i]);
  }
  first = earliest_of_warp(first);
  if (threadIdx.x == 0) ids[row] = first.token;
}

// Weights in units of 2^-44, so that a row's sum is exact in any order and below 2^64 up to 2^19 tokens.
constexpr double kWeightUnits = 0x1p44;

__global__ void weigh_kernel(std::uint64_t* weights, const std::uint64_t* keys, int rows, int count, double rate) {
  const int i = static_cast<int>(blockIdx.x * kThreads + threadIdx.x);
  if (i >= rows * count) return;
  const float best = logit_of_key(keys[i / count * count]);
  weights[i] =
      keys[i] == 0 ? 0 : static_cast<std::uint64_t>(rint(weight_of(logit_of_key(keys[i]), best, rate) * kWeightUnits));
}

// sums: of the weights of all rows laid end to end; what they add up to in front of a row cancels, modulo 2^64.
__global__ void draw_kernel(TokenId* ids, const std::uint64_t* keys, const std::uint64_t* weights,
                            const std::uint64_t* sums, int count, DrawParams params, Noise noise,
                            const std::uint32_t* positions) {
  const int row = static_cast<int>(blockIdx.x);
  const std::int64_t start = std::int64_t{row} * count;
  const std::uint64_t in_front = sums[start] - weights[start];
  const double wanted = params.top_p * static_cast<double>(sums[start + count - 1] - in_front);
  const float best = logit_of_key(keys[start]);
  Arrival first = never();
  for (int i = static_cast<int>(threadIdx.x); i < count; i += kThreads) {
    const std::uint64_t key = keys[start + i];
    const double before = static_cast<double>(sums[start + i] - weights[start + i] - in_front);
    if (key == 0 || (i > 0 && params.top_p < 1 && before >= wanted)) break;
    const double weight = weight_of(logit_of_key(key), best, 1 / params.temperature);
    if (weight < params.min_p) break;
    const TokenId token = token_of_key(key);
    first = earlier(first, arrival_of(token, weight, noise.token_words(positions[row], token)[token & 3]));
  }
  first = earliest_of_block(first);
  if (threadIdx.x == 0) ids[row] = first.token;
}

unsigned blocks_of(std::int64_t entries, int each) { return static_cast<unsigned>((entries + each - 1) / each); }

std::size_t key_bytes(int rows, int count) { return std::size_t(rows) * count * sizeof(std::uint64_t); }

}  // namespace

VocabularyOps::VocabularyOps(int max_rows, int vocabulary, bool whole_rows, cudaStream_t stream)
    : stream_(stream),
      max_keys_(whole_rows ? std::max(vocabulary, kMaxTopK) : kMaxTopK),
      select_(max_rows, vocabulary, max_keys_, stream),
      best_(key_bytes(max_rows, 1)),
      keys_(key_bytes(max_rows, max_keys_)),
      weights_(key_bytes(max_rows, max_keys_)),
      sums_(key_bytes(max_rows, max_keys_)),
      arrivals_(std::size_t(max_rows) * blocks_of(vocabulary, kChunk) * sizeof(Arrival)) {}

void VocabularyOps::argmax(TokenId* ids, const LogitRows& logits) {
  select_.largest_key(best_.as<std::uint64_t>(), logits);
  launch(unpack_kernel, dim3(blocks_of(logits.rows, kThreads)), dim3(kThreads), 0, stream_, ids, nullptr,
         best_.as<std::uint64_t>(), logits.rows);
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

void VocabularyOps::gumbel_argmax(TokenId* ids, const LogitRows& logits, double temperature, const Noise& noise,
                                  const std::uint32_t* positions) {
  const unsigned chunks = blocks_of(logits.vocabulary, kChunk);
  select_.largest_key(best_.as<std::uint64_t>(), logits);
  launch(arrival_kernel, dim3(chunks, logits.rows), dim3(kThreads), 0, stream_, arrivals_.as<Arrival>(), logits,
         best_.as<std::uint64_t>(), 1 / temperature, noise, positions);
  launch(first_arrival_kernel, dim3(logits.rows), dim3(kWarpLanes), 0, stream_, ids, arrivals_.as<Arrival>(),
         static_cast<int>(chunks));
}

void VocabularyOps::draw(TokenId* ids, const LogitRows& logits, const DrawParams& params, const Noise& noise,
                         const std::uint32_t* positions) {
  if (params.top_k == 0 && params.top_p >= 1 && params.min_p == 0) {
    return gumbel_argmax(ids, logits, params.temperature, noise, positions);
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
         keys, logits.rows, count, 1 / params.temperature);
  select_.inclusive_sum(sums_.as<std::uint64_t>(), weights_.as<std::uint64_t>(), entries);
  launch(draw_kernel, dim3(logits.rows), dim3(kThreads), 0, stream_, ids, keys, weights_.as<std::uint64_t>(),
         sums_.as<std::uint64_t>(), count, params, noise, positions);
}

}  // namespace tandem::TANDEM_GPU
