// Logits -> distribution -> draw: the one chain that plain decoding, drafting and verification share.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "src/base/distribution.h"
#include "src/base/random.h"
#include "src/sample/context.h"

namespace tandem {

struct SamplingOptions {
  double temperature = 0.7;  // >= 0, finite; 0 is argmax
  int top_k = 40;            // >= 0; 0 is off; ties at the cut go to the lowest ids
  double top_p = 0.95;       // [0, 1]; keeps token i iff the probability before it is < p; always the first; 1 is off
  double min_p = 0.0;        // [0, 1]; keeps tokens with at least min_p times the largest probability
};

// Ids that may never be drawn: marked unused, or beyond the vocabulary (padding rows of a model).
class TokenMask {
 public:
  TokenMask() = default;
  // `usable[id]`; ids past its end are masked.
  explicit TokenMask(std::vector<bool> usable);
  bool allows(TokenId id) const { return id < limit_ && (usable_.empty() || usable_[static_cast<std::size_t>(id)]); }

 private:
  std::vector<bool> usable_;  // empty when every id below limit_ is usable
  TokenId limit_ = INT32_MAX;
};

// Order (design.md section 4): mask, temperature, top-k, top-p, min-p. Not thread-safe: reuses scratch; no allocation
// once warm.
class Sampler {
 public:
  // Throws Error(config) for an option outside its range.
  Sampler(SamplingOptions options, Noise noise, TokenMask mask);

  // The distribution the rules use, after the whole chain; `logits`: [vocabulary], `out` is overwritten. Temperature 0:
  // all mass on the largest logit (ties: lowest id). +inf logits share all mass equally. NaN and -inf are never chosen;
  // a row without any other usable logit is Error(numeric) naming `context.position()`.
  void distribution(std::span<const float> logits, const Context& context, Distribution& out);

  // argmax of log p + Gumbel noise of (position, token): the draw of plain decoding. Ties: lowest id. `p` is not empty.
  TokenId draw_with_noise(const Distribution& p, std::uint32_t position) const;

  // Inverse CDF in token order of one uniform keyed by (start position, node, purpose).
  TokenId draw(const Distribution& p, std::uint32_t start_position, int node, DrawPurpose purpose) const;

  double uniform(std::uint32_t start_position, int node, DrawPurpose purpose) const {
    return noise_.uniform(start_position, node, purpose);
  }

  const SamplingOptions& options() const { return options_; }
  bool greedy() const { return options_.temperature == 0; }

 private:
  struct Candidate {
    double weight;  // the logit until temperature is applied, then the probability relative to the largest
    TokenId token;
  };
  static bool ranks_before(const Candidate& a, const Candidate& b) {
    return a.weight != b.weight ? a.weight > b.weight : a.token < b.token;
  }

  void collect(std::span<const float> logits);
  void apply_temperature();
  void apply_top_p();
  TokenId argmax(std::span<const float> logits) const;

  SamplingOptions options_;
  Noise noise_;
  TokenMask mask_;
  std::vector<Candidate> candidates_;  // ascending in token between the stages of the chain
  std::vector<Candidate> ranked_;      // scratch of top-p
};

}  // namespace tandem
