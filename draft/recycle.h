// Drafts with what the target thought likely before: the best successors of every token in the rows that it verified.
#pragma once
#include <array>
#include <vector>

#include "draft/admission.h"
#include "draft/drafter.h"
#include "src/sample/token_mask.h"

namespace tandem {

// Token Recycling (Luo et al. 2024, arXiv 2408.08696): a table token -> its kSuccessors best next tokens, replaced
// whenever a row of that token was verified; until then, what followed it in the prompt, the latest first. Proposes a
// small tree of deterministic children, most likely path first. What it knows comes from the present prompt and answer
// alone: it forgets when another prompt begins, even one that goes on from the last. Memory: vocabulary x 8 ids.
class RecycleDrafter final : public GrowingDrafter {
 public:
  static constexpr int kSuccessors = 8;
  static constexpr int kMostDrafted = 4;  // beyond a few rows a pass costs more than such guesses bring (CPU)

  // `mask`: ids that the target may produce. `constraint`: of the answer; null: none.
  explicit RecycleDrafter(TokenMask mask, std::shared_ptr<Constraint> constraint = nullptr)
      : mask_(std::move(mask)), admission_(std::move(constraint)) {
    forget_ranks();
  }

  // Below the path of first children.
  void grow(TokenTree& tree, Context& context, LengthPolicy& policy) override;
  void observe(const Observation& observation, const Context& context) override;
  void begin() override { reset(); }
  void reset() override;
  std::string_view name() const override { return "recycle"; }

  // The parts of grow(), for a drafter that fills a tree from more than one source. read() comes first, and learns from
  // a text that is no continuation of what was observed. extend() grows the small tree.
  void read(const Context& context);
  void extend(TokenTree& tree, LengthPolicy& policy);

  // The successors of a token, best first; fewer than kSuccessors when it is new or its row had fewer.
  std::span<const TokenId> successors(TokenId token) const;
  // Estimated chance that the next token is the successor of this rank, from 0: how often it was, with a prior.
  double confidence(int rank) const { return hits_[static_cast<std::size_t>(rank)] / tries_; }

 private:
  using Successors = std::array<TokenId, kSuccessors>;  // -1 after the last
  struct Candidate {
    double confidence = 0;  // of the whole path
    int parent = -1;
    int rank = 0;
  };

  Successors& entry(TokenId token);
  void follow(TokenId token, TokenId next);
  void forget_ranks();
  void score(TokenId token, TokenId next);
  void record(TokenId token, std::span<const float> logits);
  Candidate best_candidate(const TokenTree& tree) const;

  void learn_text(std::span<const TokenId> tokens);

  TokenMask mask_;
  Admission admission_;
  std::vector<Successors> table_;         // by token; sized by the prompt and the first row
  std::size_t known_ = 0;                 // tokens of the sequence that the table is about
  std::array<double, kSuccessors> hits_;  // prior and count of each rank
  double tries_;
  std::array<double, kMaxTreeNodes> path_confidence_{};
  std::array<int, kMaxTreeNodes> next_rank_{};  // of each node: the rank its next child would have
};

}  // namespace tandem
