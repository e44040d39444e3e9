#include "src/sample/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "src/base/error.h"

namespace tandem {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

void require(bool holds, const char* option, const char* expected, double got) {
  if (!holds) fail(ErrorKind::config, "sampling.{}: expected {}, got {}", option, expected, got);
}

[[noreturn]] void fail_row(std::span<const float> logits, const Context& context) {
  const auto nan = std::count_if(logits.begin(), logits.end(), [](float logit) { return std::isnan(logit); });
  fail(ErrorKind::numeric,
       "logits at position {}: expected a usable token with a value above -inf, got none in {} values ({} of them NaN)",
       context.position(), logits.size(), nan);
}

}  // namespace

TokenMask::TokenMask(std::vector<bool> usable)
    : usable_(std::move(usable)), limit_(static_cast<TokenId>(usable_.size())) {
  if (std::find(usable_.begin(), usable_.end(), false) == usable_.end()) usable_.clear();
}

Sampler::Sampler(SamplingOptions options, Noise noise, TokenMask mask)
    : options_(options), noise_(noise), mask_(std::move(mask)) {
  require(options_.temperature >= 0 && std::isfinite(options_.temperature), "temperature", "a finite number >= 0",
          options_.temperature);
  require(options_.top_k >= 0, "top_k", "an integer >= 0", options_.top_k);
  require(options_.top_p >= 0 && options_.top_p <= 1, "top_p", "0..1", options_.top_p);
  require(options_.min_p >= 0 && options_.min_p <= 1, "min_p", "0..1", options_.min_p);
}

void Sampler::distribution(std::span<const float> logits, const Context& context, Distribution& out) {
  out.clear();
  if (greedy()) {
    const TokenId best = argmax(logits);
    if (best < 0) fail_row(logits, context);
    out.add(best, 1.0);
    return;
  }
  collect(logits);
  if (candidates_.empty()) fail_row(logits, context);
  apply_temperature();
  if (options_.top_p < 1) apply_top_p();
  if (options_.min_p > 0) {
    std::erase_if(candidates_, [&](const Candidate& candidate) { return candidate.weight < options_.min_p; });
  }
  double total = 0;
  for (const Candidate& candidate : candidates_) total += candidate.weight;
  out.tokens.reserve(candidates_.capacity());  // the most that any row can need: later rows allocate nothing
  out.probabilities.reserve(candidates_.capacity());
  for (const Candidate& candidate : candidates_) {
    const double probability = candidate.weight / total;
    if (probability > 0) out.add(candidate.token, probability);
  }
}

TokenId Sampler::argmax(std::span<const float> logits) const {
  float best = -std::numeric_limits<float>::infinity();
  TokenId token = -1;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const TokenId id = static_cast<TokenId>(i);
    if (logits[i] > best && mask_.allows(id)) best = logits[i], token = id;
  }
  return token;
}

// Fills candidates_ with the usable logits above -inf, of those only the top_k best. A buffer of twice top_k is cut
// back whenever it is full, and its weakest survivor becomes the bar for the rest of the row: one pass in which nearly
// every token of a large vocabulary fails the first comparison. NaN fails it always.
void Sampler::collect(std::span<const float> logits) {
  const std::size_t k = static_cast<std::size_t>(options_.top_k);
  const bool unlimited = k == 0 || k >= logits.size();
  const std::size_t buffer = unlimited ? logits.size() : std::min(logits.size(), std::max(2 * k, std::size_t{64}));
  candidates_.clear();
  candidates_.reserve(buffer);
  float bar = -std::numeric_limits<float>::infinity();
  const auto keep_best = [&] {
    const auto last = candidates_.begin() + static_cast<std::ptrdiff_t>(k) - 1;
    std::nth_element(candidates_.begin(), last, candidates_.end(), ranks_before);
    bar = static_cast<float>(last->weight);
    candidates_.resize(k);
  };
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (!(logits[i] > bar) || !mask_.allows(static_cast<TokenId>(i))) continue;
    if (!unlimited && candidates_.size() == buffer) {
      keep_best();
      if (!(logits[i] > bar)) continue;
    }
    candidates_.push_back({logits[i], static_cast<TokenId>(i)});
  }
  if (unlimited) return;
  if (candidates_.size() > k) keep_best();
  std::sort(candidates_.begin(), candidates_.end(),
            [](const Candidate& a, const Candidate& b) { return a.token < b.token; });
}

// Weights relative to the largest, so that no temperature can overflow: the largest is exactly 1.
void Sampler::apply_temperature() {
  double best = -kInfinity;
  for (const Candidate& candidate : candidates_) best = std::max(best, candidate.weight);
  if (best == kInfinity) {
    std::erase_if(candidates_, [](const Candidate& candidate) { return candidate.weight < kInfinity; });
    for (Candidate& candidate : candidates_) candidate.weight = 1;
    return;
  }
  for (Candidate& candidate : candidates_) {
    candidate.weight = std::exp((candidate.weight - best) / options_.temperature);
  }
  std::erase_if(candidates_, [](const Candidate& candidate) { return candidate.weight == 0; });
}

// Ranks only as many candidates as the cut needs, in growing chunks.
void Sampler::apply_top_p() {
  constexpr std::size_t kFirstChunk = 256, kGrowth = 4;
  double total = 0;
  for (const Candidate& candidate : candidates_) total += candidate.weight;
  const double wanted = options_.top_p * total;
  // All tokens below this weight together hold less than 1 - top_p, so they lie behind the cut (half, for rounding).
  const double negligible = 0.5 * (1 - options_.top_p) * total / static_cast<double>(candidates_.size());
  ranked_.clear();
  ranked_.reserve(candidates_.capacity());
  std::copy_if(candidates_.begin(), candidates_.end(), std::back_inserter(ranked_),
               [&](const Candidate& candidate) { return candidate.weight >= negligible; });
  double before = 0;
  std::size_t kept = 0;
  for (std::size_t sorted = 0, chunk = kFirstChunk; kept == sorted && sorted < ranked_.size(); chunk *= kGrowth) {
    const auto begin = ranked_.begin() + static_cast<std::ptrdiff_t>(sorted);
    sorted = std::min(sorted + chunk, ranked_.size());
    const auto end = ranked_.begin() + static_cast<std::ptrdiff_t>(sorted);
    if (end != ranked_.end()) std::nth_element(begin, end - 1, ranked_.end(), ranks_before);
    std::sort(begin, end, ranks_before);
    while (kept < sorted && (kept == 0 || before < wanted)) before += ranked_[kept++].weight;
  }
  const Candidate last = ranked_[kept - 1];
  std::erase_if(candidates_, [&](const Candidate& candidate) { return ranks_before(last, candidate); });
}

TokenId Sampler::draw_with_noise(const Distribution& p, std::uint32_t position) const {
  TokenId best = p.tokens.front();
  if (p.size() == 1) return best;
  // argmax of log p - ln(-ln u) is argmin of (-ln u) / p, and -ln u > 1 - u rules most tokens out before the logarithm.
  double least = kInfinity;
  std::array<std::uint32_t, 4> words{};
  TokenId block = -1;
  for (std::size_t i = 0; i < p.size(); ++i) {
    const TokenId token = p.tokens[i];
    if (token >> 2 != block) {
      block = token >> 2;
      words = noise_.token_words(position, token);
    }
    const double u = uniform_from_word(words[token & 3]);
    if (1 - u >= least * p.probabilities[i]) continue;
    const double arrival = -std::log(u) / p.probabilities[i];
    if (arrival < least) least = arrival, best = token;
  }
  return best;
}

TokenId Sampler::draw(const Distribution& p, std::uint32_t start_position, int node, DrawPurpose purpose) const {
  if (p.size() == 1) return p.tokens.front();
  const double u = uniform(start_position, node, purpose);
  double cumulative = 0;
  for (std::size_t i = 0; i + 1 < p.size(); ++i) {
    cumulative += p.probabilities[i];
    if (u < cumulative) return p.tokens[i];
  }
  return p.tokens.back();
}

}  // namespace tandem
