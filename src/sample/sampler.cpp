#include "src/sample/sampler.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "src/base/error.h"
#include "src/sample/exponential.h"
#include "src/sample/logprobs.h"
#include "src/sample/require_option.h"
#include "src/sample/row_scan.h"

namespace tandem {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr float kLowest = -std::numeric_limits<float>::infinity();

// The most that any row can need: later rows allocate nothing.
void reserve(Distribution& out, std::size_t size) {
  out.tokens.reserve(size);
  out.probabilities.reserve(size);
}

template <typename Keep>
void keep_if(Distribution& out, Keep&& keep) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < out.size(); ++i) {
    out.tokens[kept] = out.tokens[i];
    out.probabilities[kept] = out.probabilities[i];
    kept += keep(out.probabilities[i]) ? 1 : 0;
  }
  out.tokens.resize(kept);
  out.probabilities.resize(kept);
}

constexpr std::size_t kAppended = 256;  // tokens of a row that are kept or left out at once

// Adds the weights above `least`, of tokens `first` and following: all of a block or none of it at once.
void append_above(double least, TokenId first, std::span<const double> weights, Distribution& out) {
  std::size_t above = 0;
  for (const double weight : weights) above += weight > least ? 1 : 0;
  if (above == 0) return;
  if (above == weights.size()) {
    out.probabilities.insert(out.probabilities.end(), weights.begin(), weights.end());
    out.tokens.resize(out.tokens.size() + above);
    std::iota(out.tokens.end() - static_cast<std::ptrdiff_t>(above), out.tokens.end(), first);
    return;
  }
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] > least) out.add(first + static_cast<TokenId>(i), weights[i]);
  }
}

}  // namespace

Sampler::Sampler(SamplingOptions options, Noise noise, TokenMask mask, std::shared_ptr<Constraint> constraint)
    : options_(std::move(options)),
      noise_(noise),
      mask_(std::move(mask)),
      constraint_(std::move(constraint)),
      adjuster_(options_) {
  require_option(options_.temperature >= 0 && std::isfinite(options_.temperature), "temperature",
                 "a finite number >= 0", options_.temperature);
  constexpr double kLargest = std::numeric_limits<double>::max();  // with infinity the best logit would become NaN
  if (!greedy()) rate_ = std::min(1 / options_.temperature, kLargest);
  require_option(options_.top_k >= 0, "top_k", "an integer >= 0", options_.top_k);
  require_option(options_.top_p >= 0 && options_.top_p <= 1, "top_p", "0..1", options_.top_p);
  require_option(options_.min_p >= 0 && options_.min_p <= 1, "min_p", "0..1", options_.min_p);
}

// What may be drawn, and what is changed of it.
void Sampler::begin_row(std::span<const float> logits, const Context& context) {
  const TokenMask& mask = constraint_ ? constraint_->mask(constraint_->state(context)) : mask_;
  usable_ = mask.runs();
  adjusted_ = adjuster_.adjust(logits, context.tokens(), mask);
}

void Sampler::fail_row(std::span<const float> logits, const Context& context) const {
  const auto nan = std::count_if(logits.begin(), logits.end(), [](float logit) { return std::isnan(logit); });
  fail(ErrorKind::numeric,
       "logits at position {}: expected a usable token with a value above -inf, got none in {} values ({} of them "
       "NaN){}",
       context.position(), logits.size(), nan, constraint_ ? "; " + constraint_->explain(context) : "");
}

double Sampler::log_total(std::span<const float> logits) const {
  if (!constraint_) return log_sum_exp(logits);
  const auto part = [&](const TokenRun& run) {
    const auto size = static_cast<TokenId>(logits.size());
    const TokenId begin = std::min(run.begin, size), end = std::min(run.end, size);
    return logits.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
  };
  double top = -kInfinity;
  for (const TokenRun& run : usable_) top = std::max(top, double{largest(part(run))});
  if (std::isinf(top)) return top;
  double total = 0;
  std::array<double, 256> block;
  std::size_t filled = 0;
  const auto add_up = [&] {
    exponentials(std::span(block).first(filled));
    total += sum(std::span(block).first(filled));
    filled = 0;
  };
  for (const TokenRun& run : usable_) {
    for (const float logit : part(run)) {
      block[filled++] = logit - top;
      if (filled == block.size()) add_up();
    }
  }
  add_up();
  return top + std::log(total);
}

bool Sampler::any_usable(std::span<const float> logits, const Context& context) {
  begin_row(logits, context);
  const auto is_adjusted = [&](TokenId token) {
    return std::ranges::binary_search(adjusted_, token, {}, &AdjustedLogit::token);
  };
  if (std::ranges::any_of(adjusted_, [](const AdjustedLogit& a) { return a.logit > -kInfinity; })) return true;
  for (const TokenRun& run : usable_) {  // nearly always the first token decides
    const TokenId end = std::min(run.end, static_cast<TokenId>(logits.size()));
    for (TokenId token = run.begin; token < end; ++token) {
      if (logits[static_cast<std::size_t>(token)] > kLowest && !is_adjusted(token)) return true;
    }
  }
  return false;
}

void Sampler::distribution(std::span<const float> logits, const Context& context, Distribution& out) {
  out.clear();
  begin_row(logits, context);
  if (candidates(static_cast<int>(logits.size())) > 0) {
    collect_top_k(logits, out);
    if (out.size() == 0) fail_row(logits, context);
    finish(apply_temperature(out), out);
    return;
  }
  const Ranked top = best(logits);
  if (top.token < 0) fail_row(logits, context);
  if (greedy()) {
    out.add(top.token, 1.0);
  } else if (options_.min_p > 0 && options_.top_p == 1) {
    collect_above(logits, bar_of_min_p(top.weight), out);
    finish(apply_temperature(out), out);
  } else {
    finish(weigh_all(logits, top.weight, out), out);
  }
}

void Sampler::distribution(const Logits& logits, int row, const Context& context, Distribution& out) {
  const TokenId picked = logits.pick(row);
  const std::span<const Candidate> best = logits.best(row);
  if (picked < 0 && (best.empty() || best.front().token < 0)) return distribution(logits.row(row), context, out);
  out.clear();
  if (picked >= 0) return out.add(picked, 1.0);
  assert(!greedy() && logits.per_row == options_.top_k);
  ranked_.clear();
  for (const Candidate& candidate : best) {
    if (candidate.token >= 0) ranked_.push_back({candidate.logit, candidate.token});
  }
  take_ranked(out);
  finish(apply_temperature(out), out);
}

std::optional<Picking> Sampler::picking() const {
  if (constraint_ || adjuster_.adjusts()) return std::nullopt;
  return Picking{.temperature = options_.temperature,
                 .top_k = options_.top_k,
                 .top_p = options_.top_p,
                 .min_p = options_.min_p,
                 .noise = noise_};
}

// What comes after the temperature; `total` is the weight of all tokens that top-p may look at.
void Sampler::finish(double total, Distribution& out) {
  const std::size_t all = out.size();
  if (options_.top_p < 1) apply_top_p(total, out);
  if (options_.min_p > 0) keep_if(out, [&](double weight) { return weight >= options_.min_p; });
  // No weight is so small (exponential.h) that this makes it 0. Below 1, top-p may have only summed some tokens.
  const double scale = 1 / (options_.top_p == 1 && out.size() == all ? total : sum(out.probabilities));
  for (double& probability : out.probabilities) probability *= scale;
}

template <typename OnRun, typename OnAdjusted>
void Sampler::walk(std::span<const float> logits, OnRun&& run, OnAdjusted&& one) const {
  const auto between = [&](TokenId begin, TokenId end) {
    return logits.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
  };
  auto next = adjusted_.begin();
  for (const TokenRun& usable : usable_) {
    TokenId begin = usable.begin;
    const TokenId end = std::min(usable.end, static_cast<TokenId>(logits.size()));
    if (begin >= end) return;
    for (; next != adjusted_.end() && next->token < end; ++next) {
      if (begin < next->token) run(begin, between(begin, next->token));
      one(*next);
      begin = next->token + 1;
    }
    if (begin < end) run(begin, between(begin, end));
  }
}

// The best usable logit, its weight -inf and its token -1 when there is none above -inf.
Sampler::Ranked Sampler::best(std::span<const float> logits) const {
  constexpr std::size_t kChunk = 4096;  // its largest value is looked for first, its place only where that is news
  Ranked best{-kInfinity, -1};
  walk(
      logits,
      [&](TokenId begin, std::span<const float> run) {
        for (std::size_t done = 0; done < run.size(); done += kChunk) {
          const auto chunk = run.subspan(done, std::min(kChunk, run.size() - done));
          const float value = largest(chunk);
          if (!(value > best.weight)) continue;
          const auto place =
              done + static_cast<std::size_t>(std::find(chunk.begin(), chunk.end(), value) - chunk.begin());
          best = {value, begin + static_cast<TokenId>(place)};
        }
      },
      [&](const AdjustedLogit& adjusted) {
        if (adjusted.logit > best.weight) best = {adjusted.logit, adjusted.token};
      });
  return best;
}

int Sampler::best_tokens(std::span<const float> logits, const Context& context, std::span<RankedToken> out) {
  begin_row(logits, context);
  const auto beats = [](const RankedToken& a, const RankedToken& b) {
    return a.value != b.value ? a.value > b.value : a.token < b.token;
  };
  int count = 0;
  float bar = kLowest;  // of the tokens that nothing adjusts: those of equal value come in ascending order
  walk(
      logits,
      [&](TokenId begin, std::span<const float> run) {
        each_above(run, bar, [&](std::size_t i) {
          insert_ranked(out, count, {begin + static_cast<TokenId>(i), run[i]}, beats);
          if (count == static_cast<int>(out.size())) bar = static_cast<float>(out.back().value);
        });
      },
      [](const AdjustedLogit&) {});
  for (const AdjustedLogit& adjusted : adjusted_) {
    const RankedToken token{adjusted.token, adjusted.logit};
    if (!(adjusted.logit > -kInfinity)) continue;
    if (count < static_cast<int>(out.size()) || beats(token, out.back())) insert_ranked(out, count, token, beats);
  }
  if (count == 0) fail_row(logits, context);
  return count;
}

// Fills `out` with the top_k best usable logits above -inf. A buffer of twice top_k is cut back whenever it is full,
// and its weakest survivor becomes the bar for the rest of the row: one pass in which nearly every token of a large
// vocabulary fails the first comparison. The adjusted logits, few and not all of them floats, come last.
void Sampler::collect_top_k(std::span<const float> logits, Distribution& out) {
  const auto k = static_cast<std::size_t>(options_.top_k);
  const std::size_t buffer = std::max(2 * k, std::size_t{64});
  ranked_.clear();
  ranked_.reserve(std::min(buffer, logits.size()) + adjusted_.size());
  const auto keep_best = [&] {
    std::nth_element(ranked_.begin(), ranked_.begin() + static_cast<std::ptrdiff_t>(k) - 1, ranked_.end(),
                     ranks_before);
    ranked_.resize(k);
  };
  float bar = kLowest;
  walk(
      logits,
      [&](TokenId begin, std::span<const float> run) {
        each_above(run, bar, [&](std::size_t i) {
          ranked_.push_back({run[i], begin + static_cast<TokenId>(i)});
          if (ranked_.size() < buffer) return;
          keep_best();
          bar = static_cast<float>(ranked_[k - 1].weight);
        });
      },
      [](const AdjustedLogit&) {});
  for (const AdjustedLogit& adjusted : adjusted_) {
    if (adjusted.logit > -kInfinity) ranked_.push_back({adjusted.logit, adjusted.token});
  }
  if (ranked_.size() > k) keep_best();
  take_ranked(out);
}

void Sampler::take_ranked(Distribution& out) {
  std::sort(ranked_.begin(), ranked_.end(), [](const Ranked& a, const Ranked& b) { return a.token < b.token; });
  reserve(out, static_cast<std::size_t>(options_.top_k));
  for (const Ranked& ranked : ranked_) out.add(ranked.token, ranked.weight);
}

// Fills `out` with the usable logits above the bar, and with the adjusted ones above -inf.
void Sampler::collect_above(std::span<const float> logits, float bar, Distribution& out) const {
  reserve(out, logits.size());
  walk(
      logits,
      [&](TokenId begin, std::span<const float> run) {
        each_above(run, bar, [&](std::size_t i) { out.add(begin + static_cast<TokenId>(i), run[i]); });
      },
      [&](const AdjustedLogit& adjusted) {
        if (adjusted.logit > -kInfinity) out.add(adjusted.token, adjusted.logit);
      });
}

// A logit below which min-p keeps nothing, given that no filter before it needs the weaker tokens. The margin is far
// beyond rounding: min-p itself decides at its edge.
float Sampler::bar_of_min_p(double top) const {
  const double bar = top + options_.temperature * std::log(options_.min_p);
  const double with_margin = bar - 1e-5 * (1 + std::abs(top) + std::abs(bar));
  return std::abs(with_margin) < std::numeric_limits<float>::max() ? static_cast<float>(with_margin) : kLowest;
}

// Logits to weights relative to the largest, so that no temperature can overflow: the largest is exactly 1. Returns
// their sum.
double Sampler::apply_temperature(Distribution& out) const {
  double top = -kInfinity;
  for (const double logit : out.probabilities) top = logit > top ? logit : top;
  if (top == kInfinity) {
    keep_if(out, [](double logit) { return logit == kInfinity; });
    std::fill(out.probabilities.begin(), out.probabilities.end(), 1.0);
  } else {
    for (double& logit : out.probabilities) logit = (logit - top) * rate_;
    exponentials(out.probabilities);
    keep_if(out, [](double weight) { return weight > 0; });
  }
  return sum(out.probabilities);
}

// Fills `out` with the weights of all usable tokens and returns their sum: collecting and apply_temperature() in one
// pass over the row, of which `top` is the largest logit. Where top-p follows, tokens that lie behind its cut for
// certain are only summed: those whose weights, were they a whole vocabulary, held half of 1 - top_p of the largest.
double Sampler::weigh_all(std::span<const float> logits, double top, Distribution& out) const {
  reserve(out, logits.size());
  if (top == kInfinity) {
    collect_above(logits, kLowest, out);
    return apply_temperature(out);
  }
  const double least = 0.5 * (1 - options_.top_p) / static_cast<double>(logits.size());
  double total = 0;
  std::array<double, 1024> block;  // so long that exponentials() does not wait for what was just written
  const auto weigh = [&](TokenId token, std::span<double> weights) {
    for (double& logit : weights) logit = (logit - top) * rate_;
    exponentials(weights);  // NaN and -inf have no weight
    total += sum(weights);
    for (std::size_t done = 0; done < weights.size(); done += kAppended) {
      const auto piece = weights.subspan(done, std::min(kAppended, weights.size() - done));
      append_above(least, token + static_cast<TokenId>(done), piece, out);
    }
  };
  walk(
      logits,
      [&](TokenId begin, std::span<const float> run) {
        while (!run.empty()) {
          const std::size_t count = std::min(block.size(), run.size());
          std::copy_n(run.begin(), count, block.begin());
          weigh(begin, std::span(block).first(count));
          run = run.subspan(count);
          begin += static_cast<TokenId>(count);
        }
      },
      [&](const AdjustedLogit& adjusted) {
        block[0] = adjusted.logit;
        weigh(adjusted.token, std::span(block).first(1));
      });
  return total;
}

// Ranks only as many candidates as the cut needs, in growing chunks.
void Sampler::apply_top_p(double total, Distribution& out) {
  constexpr std::size_t kFirstChunk = 256, kGrowth = 4;
  const double wanted = options_.top_p * total;
  ranked_.clear();
  ranked_.reserve(out.tokens.capacity());
  for (std::size_t i = 0; i < out.size(); ++i) ranked_.push_back({out.probabilities[i], out.tokens[i]});
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
  if (kept == out.size()) return;
  std::sort(ranked_.begin(), ranked_.begin() + static_cast<std::ptrdiff_t>(kept),
            [](const Ranked& a, const Ranked& b) { return a.token < b.token; });
  out.clear();
  for (std::size_t i = 0; i < kept; ++i) out.add(ranked_[i].token, ranked_[i].weight);
}

}  // namespace tandem
