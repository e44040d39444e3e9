// Drafts with a smaller model of the same vocabulary.
#pragma once
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "draft/admission.h"
#include "draft/drafter.h"
#include "src/model/language_model.h"
#include "src/sample/sampler.h"

namespace tandem {

// A tree grown best-first by path probability, as far as the policy goes; a policy that wants no siblings gets a chain.
// Children are drawn without replacement from the draft's distribution after the whole sampler chain (under shared
// noise: its best by that noise); at temperature 0 they are its best tokens, as deterministic children. The cache is
// brought up to date from the tokens at hand at each draft step, so acceptance, rejection, cut tokens, another branch
// and a new prompt are one case. Where the policy does not want to read what is long unread, it is asked about the last
// tokens alone, from which the draft then goes on until reset() or another prompt: no draft step is ever too dear to be
// tried again. The beginning of a prompt may be read first as a trial, so that a draft which foretells nothing of it
// need not read the rest. Where a constraint leaves one token, that is the child, without a draft step.
class ModelDrafter final : public SteppingDrafter {
 public:
  static constexpr int kMostChildren = 4;  // of one node
  static constexpr int kTrialTokens = 24;  // of a prompt that are read as a trial
  static constexpr int kTrialBegins = 8;   // tokens of it whose successors are too hard to foretell

  // `model` outlives this. `context`: slots of the draft's cache, at most the model's limit (Error(model) otherwise).
  // `mask`: ids that both vocabularies may produce. `draw`: as the rule that checks the proposals wants it.
  // `constraint`: of the answer; null: none. Error(config) when the model's head was trimmed to tokens that mask and
  // bias all forbid.
  ModelDrafter(LanguageModel& model, int context, KvType kv_type, SamplingOptions sampling, Noise noise, TokenMask mask,
               DraftDraw draw = DraftDraw::independent, std::shared_ptr<Constraint> constraint = nullptr);

  void observe(const Observation&, const Context&) override {}
  void begin() override { tried_ = false; }
  std::string take_warning() override;
  void reset() override;
  std::string_view name() const override { return "model"; }

  // Wherever nodes are likeliest, below and beside those that are there. Throws Error(numeric) for a row of logits
  // without a usable number, unless it is the constraint that leaves none.
  void grow(TokenTree& tree, Context& context, LengthPolicy& policy) override;
  DraftQuestion first(const TokenTree& tree, Context& context) override;

  // The text that the cache stands for: after a proposal that drafted, the context and the path to the node of the last
  // draft step. Its first tokens have no keys and values where they were skipped.
  std::span<const TokenId> cached() const { return cached_; }
  const KvCache& cache() const { return cache_; }

 private:
  // A node of the tree that grows.
  struct Branch {
    double path = 1;           // probability of the path to it
    double left = 1;           // share of its distribution that no child of it has
    double next = 0;           // share of that which the likeliest next child has
    bool known = false;        // a draft step was spent on it
    bool opened = false;       // it was looked whether a constraint leaves one token
    bool step_open = true;     // one may still be
    bool row_open = true;      // it may get one more child
    int rank = 0, ranked = 0;  // temperature 0: its next child among the best tokens, and how many those are
    std::array<RankedToken, kMostChildren> best{};  // value: probability
  };

  // How well a token of the trial was foretold.
  struct Foretold {
    double confidence;
    bool came;
  };

  void begin_growing(const TokenTree& tree);
  double promise(int node) const;
  int most_promising(int nodes) const;
  bool open(TokenTree& tree, int node, LengthPolicy& policy);
  bool spend_step(TokenTree& tree, int node, Context& context, LengthPolicy& policy);
  bool add_row(TokenTree& tree, int node, std::uint32_t start, LengthPolicy& policy);
  int add_child(TokenTree& tree, int node, std::uint32_t start);
  void learn(TokenTree& tree, int node, const Logits& logits, const Context& context);
  void find_next(const TokenTree& tree, int node);
  DraftQuestion question(const TokenTree& tree, int node) const;
  Branch& branch(int node) { return branches_[static_cast<std::size_t>(node)]; }
  const Branch& branch(int node) const { return branches_[static_cast<std::size_t>(node)]; }

  bool can_draft(std::span<const TokenId> tokens);
  std::size_t shared(std::span<const TokenId> tokens) const;
  int unread(std::span<const TokenId> tokens) const;
  bool allow_step(DraftQuestion question, std::span<const TokenId> tokens, LengthPolicy& policy);
  void try_out(DraftQuestion question, std::span<const TokenId> committed, LengthPolicy& policy);
  void read_trial(std::span<const TokenId> tokens);
  void forget_differences(std::span<const TokenId> tokens);
  Logits feed(std::span<const TokenId> tokens);

  LanguageModel& model_;
  DraftDraw draw_;
  Admission admission_;
  Sampler sampler_;
  KvCache cache_;
  std::optional<Picking> picking_;     // of what a proposal needs of a row; nothing: the row itself
  std::vector<std::uint32_t> usable_;  // the sampler's mask, as picking_ has it
  int room_;                           // tokens the cache and the model's positions have room for
  std::vector<TokenId> cached_;
  std::size_t skipped_ = 0;          // of cached_: tokens at the front that were not read
  std::vector<Position> positions_;  // 0, 1, 2, ...
  bool tried_ = false;               // or not worth it for this prompt
  bool trial_known_ = false;         // trial_ is about the first of cached_
  std::array<Foretold, kTrialTokens - kTrialBegins - 1> trial_{};
  std::array<Branch, kMaxTreeNodes> branches_;
  std::string warning_;
  bool said_full_ = false, said_unknown_ = false;
};

}  // namespace tandem
