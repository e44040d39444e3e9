// Logits -> distribution -> draw: the one chain that plain decoding, drafting and verification share.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "src/base/distribution.h"
#include "src/base/logits.h"
#include "src/base/picking.h"
#include "src/base/random.h"
#include "src/sample/constraint.h"
#include "src/sample/context.h"
#include "src/sample/logit_adjuster.h"
#include "src/sample/ranked.h"
#include "src/sample/sampling_options.h"
#include "src/sample/token_mask.h"

namespace tandem {

// Order (design.md section 4): mask, logit bias, repetition, presence and frequency penalty, temperature, top-k, top-p,
// min-p. Not thread-safe: reuses scratch; no allocation once warm.
class Sampler {
 public:
  // `constraint`: of the answer, where there is one; samplers of one sequence share it. Throws Error(config) for an
  // option outside its range.
  Sampler(SamplingOptions options, Noise noise, TokenMask mask, std::shared_ptr<Constraint> constraint = nullptr);

  // The distribution the rules use, after the whole chain; `logits`: [vocabulary], `out` is overwritten. `context`: all
  // tokens before the one to draw, the path to the row's node included; the penalties read it. Temperature 0: all mass
  // on the largest logit after bias and penalties (ties: lowest id). +inf logits share all mass equally. NaN and -inf
  // are never chosen; a row without any other usable logit is Error(numeric) naming `context.position()` and, with a
  // constraint, what it expected.
  void distribution(std::span<const float> logits, const Context& context, Distribution& out);

  // The same of row `row` of a pass, from no more than its candidates where the pass found them. Where it picked a
  // token, all mass on that one: it makes no difference to a caller who draws with draw_with_noise() at
  // `context.position()`, and none at all at temperature 0.
  void distribution(const Logits& logits, int row, const Context& context, Distribution& out);

  // How a pass may pick what draw_with_noise() would draw, without mask and positions; with candidates set instead,
  // what distribution() needs of a row. Nothing where rows are constrained or adjusted.
  std::optional<Picking> picking() const;
  // How many candidates of a row distribution() needs; 0: the row, or no more than a picked token.
  int candidates(int vocabulary) const {
    return !greedy() && options_.top_k > 0 && options_.top_k < vocabulary ? options_.top_k : 0;
  }

  // The best usable tokens after mask, bias and penalties with their logits, best first, ties to the lowest id: fills
  // as many of `out` (not empty) as there are and returns their number, at least 1. Errors as of distribution().
  int best_tokens(std::span<const float> logits, const Context& context, std::span<RankedToken> out);

  // argmax of log p + Gumbel noise of (position, token): the draw of plain decoding. Ties: lowest id. `p` is not empty.
  TokenId draw_with_noise(const Distribution& p, std::uint32_t position) const;

  // Inverse CDF in token order of one uniform keyed by (start position, node, purpose).
  TokenId draw(const Distribution& p, std::uint32_t start_position, int node, DrawPurpose purpose) const;

  double uniform(std::uint32_t start_position, int node, DrawPurpose purpose) const {
    return noise_.uniform(start_position, node, purpose);
  }

  const SamplingOptions& options() const { return options_; }
  const TokenMask& mask() const { return mask_; }  // of all rows; a constraint leaves less
  Constraint* constraint() const { return constraint_.get(); }
  const std::shared_ptr<Constraint>& shared_constraint() const { return constraint_; }
  // Whether the row has a logit above -inf of a usable token: where the constraint leaves tokens alone that a model has
  // no rows for, it has not.
  bool any_usable(std::span<const float> logits, const Context& context);
  // log of the sum of the exponentials of the logits that the constraint left in the last row that was asked about; of
  // all without one. NaN counts nothing.
  double log_total(std::span<const float> logits) const;
  bool greedy() const { return options_.temperature == 0; }

 private:
  struct Ranked {
    double weight;
    TokenId token;
  };
  static bool ranks_before(const Ranked& a, const Ranked& b) {
    return a.weight != b.weight ? a.weight > b.weight : a.token < b.token;
  }

  // The stages of the chain work on `out`: its probabilities are logits until the temperature is applied, then weights
  // relative to the largest, and sum to 1 at the end.
  Ranked best(std::span<const float> logits) const;
  void collect_top_k(std::span<const float> logits, Distribution& out);
  void take_ranked(Distribution& out);
  void collect_above(std::span<const float> logits, float bar, Distribution& out) const;
  double apply_temperature(Distribution& out) const;
  double weigh_all(std::span<const float> logits, double top, Distribution& out) const;
  float bar_of_min_p(double top) const;
  void finish(double total, Distribution& out);
  void begin_row(std::span<const float> logits, const Context& context);
  [[noreturn]] void fail_row(std::span<const float> logits, const Context& context) const;
  void apply_top_p(double total, Distribution& out);

  // Walks the usable ids of a row in ascending order: run(begin, their logits) for those that nothing adjusts,
  // one(adjusted) for each of the others.
  template <typename OnRun, typename OnAdjusted>
  void walk(std::span<const float> logits, OnRun&& run, OnAdjusted&& one) const;

  SamplingOptions options_;
  double rate_ = 0;  // 1 / temperature
  Noise noise_;
  TokenMask mask_;
  std::shared_ptr<Constraint> constraint_;
  LogitAdjuster adjuster_;
  std::span<const TokenRun> usable_;         // of the row at hand
  std::span<const AdjustedLogit> adjusted_;  // of the row at hand
  std::vector<Ranked> ranked_;               // scratch of top-k and top-p
};

}  // namespace tandem
