// The exact law of the tokens that plain decoding puts after a prompt.
#pragma once
#include <map>
#include <span>
#include <vector>

#include "src/model/memoised_model.h"
#include "src/sample/context.h"
#include "src/sample/sampler.h"

namespace tandem {

// Probabilities come from the target's own rows and the whole sampler chain, multiplied along the continuation.
class ContinuationLaw {
 public:
  // `target` outlives this; prompt and continuation fit into it.
  ContinuationLaw(MemoisedModel& target, Sampler sampler, std::span<const TokenId> prompt);

  // Finds the most probable continuations of so many tokens: at most `count`, each of at least this probability.
  void find_likeliest(int tokens, int count, double least);
  // Of the continuations found, best first.
  std::span<const double> probabilities() const { return probabilities_; }
  double covered() const;  // their sum
  // Which of them this is, -1 if none.
  int index(std::span<const TokenId> continuation) const;

  // Of any continuation.
  double probability(std::span<const TokenId> continuation);

 private:
  const Distribution& after(std::span<const TokenId> continuation);

  MemoisedModel& target_;
  Sampler sampler_;
  Context context_;
  int prompt_size_;
  std::vector<double> probabilities_;
  std::map<std::vector<TokenId>, int> index_;
  Distribution next_;
};

}  // namespace tandem
