#include "src/engine/continuation_law.h"

#include <numeric>
#include <queue>
#include <utility>

namespace tandem {

ContinuationLaw::ContinuationLaw(MemoisedModel& target, Sampler sampler, std::span<const TokenId> prompt)
    : target_(target), sampler_(std::move(sampler)), prompt_size_(static_cast<int>(prompt.size())) {
  context_.push(prompt);
  if (sampler_.constraint() != nullptr) sampler_.constraint()->begin(prompt_size_);
}

const Distribution& ContinuationLaw::after(std::span<const TokenId> continuation) {
  context_.push(continuation);
  sampler_.distribution(target_.logits_after(context_.tokens()), context_, next_);
  context_.pop(context_.size() - prompt_size_);
  return next_;
}

// Best first: no extension is more probable than what it extends, so continuations come out in order.
void ContinuationLaw::find_likeliest(int tokens, int count, double least) {
  probabilities_.clear();
  index_.clear();
  using Reached = std::pair<double, std::vector<TokenId>>;
  std::priority_queue<Reached> open;
  open.push({1, {}});
  while (!open.empty() && static_cast<int>(probabilities_.size()) < count) {
    const auto [reached, continuation] = open.top();
    open.pop();
    if (static_cast<int>(continuation.size()) == tokens) {
      index_.emplace(continuation, static_cast<int>(probabilities_.size()));
      probabilities_.push_back(reached);
      continue;
    }
    const Distribution& next = after(continuation);
    for (std::size_t i = 0; i < next.size(); ++i) {
      const double probability = reached * next.probabilities[i];
      if (probability < least) continue;
      std::vector<TokenId> longer = continuation;
      longer.push_back(next.tokens[i]);
      open.push({probability, std::move(longer)});
    }
  }
}

double ContinuationLaw::covered() const { return std::accumulate(probabilities_.begin(), probabilities_.end(), 0.0); }

int ContinuationLaw::index(std::span<const TokenId> continuation) const {
  const auto at = index_.find({continuation.begin(), continuation.end()});
  return at == index_.end() ? -1 : at->second;
}

double ContinuationLaw::probability(std::span<const TokenId> continuation) {
  double probability = 1;
  for (std::size_t i = 0; i < continuation.size() && probability > 0; ++i) {
    probability *= after(continuation.first(i))[continuation[i]];
  }
  return probability;
}

}  // namespace tandem
