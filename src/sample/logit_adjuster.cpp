#include "src/sample/logit_adjuster.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "src/sample/require_option.h"

namespace tandem {

LogitAdjuster::LogitAdjuster(const SamplingOptions& options)
    : repetition_(options.repetition_penalty),
      presence_(options.presence_penalty),
      frequency_(options.frequency_penalty),
      window_(static_cast<std::size_t>(std::max(options.penalty_window, 0))),
      bias_(options.logit_bias) {
  require_option(repetition_ > 0 && std::isfinite(repetition_), "repetition_penalty", "a finite number > 0",
                 repetition_);
  require_option(std::isfinite(presence_), "presence_penalty", "a finite number", presence_);
  require_option(std::isfinite(frequency_), "frequency_penalty", "a finite number", frequency_);
  require_option(options.penalty_window >= 0, "penalty_window", "an integer >= 0", options.penalty_window);
  for (const auto& [token, bias] : bias_) {
    require_option(token >= 0, "logit_bias", "token ids >= 0", token);
    require_option(bias < std::numeric_limits<double>::infinity(), "logit_bias", "finite numbers or -inf", bias);
  }
  std::erase_if(bias_, [](const auto& entry) { return entry.second == 0; });
  std::stable_sort(bias_.begin(), bias_.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
}

std::span<const AdjustedLogit> LogitAdjuster::adjust(std::span<const float> logits, std::span<const TokenId> context,
                                                     const TokenMask& mask) {
  adjusted_.clear();
  recent_.clear();
  if (penalises()) read_window(context);
  auto recent = recent_.begin();
  auto bias = bias_.begin();
  while (recent != recent_.end() || bias != bias_.end()) {
    const bool biased = recent == recent_.end() || (bias != bias_.end() && bias->first <= *recent);
    const TokenId token = biased ? bias->first : *recent;
    double added = 0;
    for (; bias != bias_.end() && bias->first == token; ++bias) added += bias->second;
    int occurrences = 0;
    for (; recent != recent_.end() && *recent == token; ++recent) ++occurrences;
    if (token >= static_cast<TokenId>(logits.size())) break;
    if (!mask.allows(token)) continue;
    adjusted_.push_back({token, penalised(logits[static_cast<std::size_t>(token)] + added, occurrences)});
  }
  return adjusted_;
}

void LogitAdjuster::read_window(std::span<const TokenId> context) {
  const std::span<const TokenId> window = context.last(std::min(window_, context.size()));
  recent_.assign(window.begin(), window.end());
  std::sort(recent_.begin(), recent_.end());
}

double LogitAdjuster::penalised(double logit, int occurrences) const {
  if (occurrences == 0) return logit;
  const double repeated = logit > 0 ? logit / repetition_ : logit * repetition_;
  return repeated - presence_ - occurrences * frequency_;
}

}  // namespace tandem
