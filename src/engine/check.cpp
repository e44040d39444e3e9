#include "src/engine/check.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "src/engine/chi_square.h"
#include "src/engine/continuation_law.h"

namespace tandem {
namespace {

constexpr double kLeastCovered = 0.5;    // of the law, by continuations with a cell of their own
constexpr int kFewestTokens = 2;         // the first is drawn plainly, the second by the rule
constexpr double kLeastExpectation = 5;  // of a cell, for the statistic to follow its law

std::string text_of(const Tokenizer& tokenizer, std::span<const TokenId> ids, std::size_t index) {
  return index < ids.size() ? tokenizer.decode({ids[index]}, true) : "";
}

// Continuations counted by cell; those without a cell of their own also one by one.
struct Histogram {
  std::vector<double> cells;
  std::map<std::vector<TokenId>, int> others;

  void count(const ContinuationLaw& law, std::span<const TokenId> continuation) {
    const int cell = law.index(continuation);
    if (cell < 0) ++others[{continuation.begin(), continuation.end()}];
    ++cells[cell < 0 ? cells.size() - 1 : static_cast<std::size_t>(cell)];
  }
};

// Fits the counts to the law; the last cell holds what has none of its own.
void judge(LawCheck& check, std::vector<double> counts, const ContinuationLaw& law, double power) {
  const double draws = check.draws;
  check.covered = law.covered();
  std::vector<double> expectations(law.probabilities().begin(), law.probabilities().end());
  expectations.push_back(std::max(0.0, 1 - check.covered));
  for (double& expectation : expectations) expectation *= draws;
  // Only the rest can be too rare. It then goes with the rarest cell, and has a test of its own, because there its
  // excess could hide in what that cell is expected to hold.
  double rare_p_value = 1;
  const bool rare = expectations.size() > 1 && expectations.back() < kLeastExpectation;
  if (rare) {
    rare_p_value = poisson_p_value(counts.back(), expectations.back());
    const std::size_t last = expectations.size() - 2;
    expectations[last] += expectations.back();
    counts[last] += counts.back();
    expectations.pop_back();
    counts.pop_back();
  }
  check.cells = static_cast<int>(counts.size());
  check.statistic = chi_square(counts, expectations);
  check.p_value = chi_square_p_value(check.statistic, check.cells - 1);
  if (rare) check.p_value = std::min(1.0, 2 * std::min(check.p_value, rare_p_value));
  for (std::size_t i = 0; i < counts.size(); ++i) {
    check.total_variation += std::abs(counts[i] - expectations[i]) / (2 * draws);
  }
  check.expected_variation = std::sqrt(check.cells / draws) / 2;
  if (check.cells > 1) {
    check.detectable_variation = detectable_total_variation(draws, check.cells - 1, check.level, power);
  }
}

}  // namespace

GenerationResult Checker::answer(std::span<const TokenId> prompt, const StopRules& rules, EngineChoice choice) const {
  Engine engine = session_.make_engine(std::move(choice));
  Generation generation(engine, session_.tokenizer(), prompt, rules);
  while (generation.advance()) continue;
  return generation.result();
}

std::optional<TextCheck> Checker::same_text(std::span<const TokenId> prompt, const StopRules& rules,
                                            double temperature) const {
  const auto choice = [&](const std::string& kind) {
    EngineChoice choice = session_.configured_engine();
    choice.draft_kind = kind;
    choice.sampling.temperature = temperature;
    choice.verifier = options_.make_rule(session_.config().verify.rule);
    return choice;
  };
  const GenerationResult plain = answer(prompt, rules, choice("none"));
  const GenerationResult drafted = answer(prompt, rules, choice(session_.config().draft.kind));
  if (plain.stop_reason == StopReason::cancel || drafted.stop_reason == StopReason::cancel) return std::nullopt;
  TextCheck check{static_cast<int>(plain.ids.size()), drafted.metrics.steps, drafted.metrics.total, {}};
  if (plain.ids != drafted.ids || plain.text != drafted.text) check.difference = difference(prompt, plain, drafted);
  return check;
}

TextDifference Checker::difference(std::span<const TokenId> prompt, const GenerationResult& plain,
                                   const GenerationResult& drafted) const {
  const auto [at, other] = std::mismatch(plain.ids.begin(), plain.ids.end(), drafted.ids.begin(), drafted.ids.end());
  const auto index = static_cast<std::size_t>(at - plain.ids.begin());
  TextDifference found{static_cast<int>(index),
                       text_of(session_.tokenizer(), plain.ids, index),
                       text_of(session_.tokenizer(), drafted.ids, index),
                       {}};
  if (at == plain.ids.end() || other == drafted.ids.end()) return found;
  std::vector<TokenId> tokens(prompt.begin(), prompt.end());
  tokens.insert(tokens.end(), plain.ids.begin(), at);
  MemoisedModel target(*session_.configured_engine().target, static_cast<int>(tokens.size()), session_.target_kv_type(),
                       0);
  const std::span<const float> logits = target.logits_after(tokens);
  found.margin = double{logits[static_cast<std::size_t>(*at)]} - logits[static_cast<std::size_t>(*other)];
  return found;
}

std::optional<LawCheck> Checker::same_law(std::span<const TokenId> prompt, double level,
                                          const std::function<bool(int, int)>& progress) const {
  const EngineChoice configured = session_.configured_engine();
  const int size = static_cast<int>(prompt.size());
  const int context = std::min(size + options_.tokens + kMaxTreeNodes, configured.context);
  MemoisedModel target(*configured.target, context, session_.target_kv_type(), options_.memory_bytes);
  std::optional<MemoisedModel> draft;
  if (configured.draft != nullptr) {
    draft.emplace(*configured.draft, std::min(context, configured.draft->max_positions()), session_.draft_kv_type(),
                  options_.memory_bytes);
  }
  LawCheck check;
  check.draws = options_.draws;
  check.level = level;
  ContinuationLaw law(target, session_.make_sampler(configured.sampling, {configured.seed, 0}), prompt);
  // Where the law is flat, shorter continuations are what can be counted.
  for (check.tokens = std::min(options_.tokens, context - size);; --check.tokens) {
    law.find_likeliest(check.tokens, options_.cells - 1, kLeastExpectation / check.draws);
    if (law.covered() >= kLeastCovered || check.tokens <= kFewestTokens) break;
  }

  Histogram histogram{std::vector<double>(law.probabilities().size() + 1), {}};
  for (int i = 0; i < check.draws; ++i) {
    if (!progress(i, check.draws)) return std::nullopt;
    EngineChoice choice = session_.configured_engine();
    choice.seed += static_cast<std::uint64_t>(i);
    choice.context = context;
    choice.target = &target;
    choice.draft = draft ? &*draft : nullptr;
    choice.verifier = options_.make_rule(session_.config().verify.rule);
    Engine engine = session_.make_engine(std::move(choice));
    engine.start(prompt);
    while (engine.prefill_chunk()) continue;
    engine.first_token();
    while (engine.context().size() < size + check.tokens) engine.step(size + check.tokens - engine.context().size());
    histogram.count(law, engine.context().tokens().subspan(static_cast<std::size_t>(size)));
    check.drafts.add(engine.metrics().total);
  }
  for (const auto& [continuation, count] : histogram.others) {
    if (law.probability(continuation) == 0) check.impossible += count;
  }
  check.prefixes = target.computed() + (draft ? draft->computed() : 0);
  judge(check, histogram.cells, law, options_.power);
  return check;
}

}  // namespace tandem
