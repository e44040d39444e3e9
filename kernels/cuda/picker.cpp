#include "kernels/cuda/picker.h"

#include <tuple>

#include "kernels/cuda/matmul.h"

namespace tandem::TANDEM_GPU {
namespace {

struct PickCall {
  VocabularyOps* ops;
  TokenId* ids;
  float* values;
  LogitRows logits;
  const std::uint32_t* positions;
  double temperature, top_p, min_p;
  std::uint64_t seed;
  int top_k;
  std::uint32_t noise_stream;
  int candidates;
};
constexpr auto members(Either<PickCall> auto& c) {
  return std::tie(c.ops, c.ids, c.values, c.logits, c.positions, c.temperature, c.top_p, c.min_p, c.seed, c.top_k,
                  c.noise_stream, c.candidates);
}
constexpr std::size_t kMostCandidates = std::size_t{kMaxPassRows} * VocabularyOps::kMaxTopK;

// Whether noise decides.
bool draws(const Picking& picking) { return picking.candidates == 0 && picking.temperature > 0; }

// On the stream that the ops were made for.
void run(const PickCall& call, cudaStream_t) {
  if (call.candidates > 0) {
    return call.ops->top_k(call.ids, call.values, call.logits, call.candidates);
  }
  if (call.temperature == 0) return call.ops->argmax(call.ids, call.logits);
  call.ops->draw(call.ids, call.logits, {call.temperature, call.top_k, call.top_p, call.min_p},
                 {call.seed, call.noise_stream}, call.positions);
}

}  // namespace

Picker::Picker(const Stream& stream)
    : stream_(stream),
      ids_(kMostCandidates * sizeof(TokenId)),
      values_(kMostCandidates * sizeof(float)),
      host_ids_(kMostCandidates * sizeof(TokenId)),
      host_values_(kMostCandidates * sizeof(float)) {}

bool Picker::can(const Picking& picking) {
  if (picking.candidates > 0) return picking.candidates <= VocabularyOps::kMaxTopK;
  if (picking.temperature == 0) return true;
  return picking.top_k > 0 ? picking.top_k <= VocabularyOps::kMaxTopK : picking.top_p >= 1;
}

Picker::Inputs Picker::put(const Picking& picking, Staging& staging, StepQueue& queue) {
  return {!draws(picking) ? nullptr : positions_.put(picking.positions, staging, queue),
          picking.usable.empty() ? nullptr : usable_.put(picking.usable, staging, queue)};
}

void Picker::queue(const LogitRows& logits, const Picking& picking, const Inputs& inputs, StepQueue& queue) {
  PickCall call{};
  call.ops = &ops_for(logits.vocabulary);
  call.ids = ids_.as<TokenId>();
  call.logits = logits;
  call.logits.usable = inputs.usable;
  call.values = values_.as<float>();
  call.candidates = picking.candidates;
  if (draws(picking)) {
    call.temperature = picking.temperature;
    call.positions = inputs.positions;
    call.top_k = picking.top_k;
    call.top_p = picking.top_p;
    call.min_p = picking.min_p;
    call.seed = picking.noise.seed;
    call.noise_stream = picking.noise.stream;
  }
  queue.add(&run, call);
}

std::span<const TokenId> Picker::copy_ids(int rows) {
  const std::size_t count = static_cast<std::size_t>(rows);
  copy_to_host(host_ids_.data(), ids_.data(), count * sizeof(TokenId), stream_.get());
  return {host_ids_.as<const TokenId>(), count};
}

std::size_t Picker::copy_candidates(int rows, int count) {
  candidates_.resize(static_cast<std::size_t>(rows) * static_cast<std::size_t>(count));
  copy_to_host(host_ids_.data(), ids_.data(), candidates_.size() * sizeof(TokenId), stream_.get());
  copy_to_host(host_values_.data(), values_.data(), candidates_.size() * sizeof(float), stream_.get());
  return candidates_.size() * (sizeof(TokenId) + sizeof(float));
}

std::span<const Candidate> Picker::candidates() {
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    candidates_[i] = {host_ids_.as<const TokenId>()[i], host_values_.as<const float>()[i]};
  }
  return candidates_;
}

VocabularyOps& Picker::ops_for(int vocabulary) {
  std::unique_ptr<VocabularyOps>& ops = ops_[vocabulary];
  if (!ops) ops = std::make_unique<VocabularyOps>(kMaxPassRows, vocabulary, false, stream_.get());
  return *ops;
}

}  // namespace tandem::TANDEM_GPU
