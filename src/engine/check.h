// Losslessness on a user's own models and prompts: plain decoding against the configured drafting.
#pragma once
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/engine/session.h"

namespace tandem {

struct CheckOptions {
  int draws = 20000;  // continuations drawn of each prompt, each with a seed of its own
  int tokens = 4;     // of a continuation; 2 or 3 where the law of more is too flat to count
  int cells = 64;     // at most: the most probable continuations each for itself, the rest in one
  double power = 0.99;
  std::size_t memory_bytes = std::size_t{1} << 30;  // for remembered logits, of each model
  // Makes the rule under test, by its configured name.
  std::function<std::unique_ptr<Verifier>(std::string_view)> make_rule = make_verifier;
};

// Where two answers part. Texts are empty where an answer had ended.
struct TextDifference {
  int index;  // of the first token that differs, in the answer
  std::string plain, drafted;
  std::optional<double> margin;  // by how much the target's own logit of the plain token exceeds the drafted one's
};

struct TextCheck {
  int tokens = 0;  // of the plain answer
  std::int64_t steps = 0;
  DraftCounts drafts;
  std::optional<TextDifference> difference;  // nullopt: the answers are equal
  bool passed() const { return !difference; }
};

// Continuations drawn with drafting, against the law that the plain distributions give them.
struct LawCheck {
  int draws = 0, tokens = 0;
  int cells = 0;       // each with an expectation of at least 5 draws
  double covered = 0;  // probability of the continuations that have a cell of their own
  int impossible = 0;  // draws that plain decoding never gives
  double statistic = 0;
  double p_value = 1;  // chance that a true law fits as badly: of the statistic, and of draws outside the cells
  double level = 0;    // the p-value below which the check fails
  double total_variation = 0,
         expected_variation = 0;               // over the cells: measured, and its mean under a true law at most
  std::optional<double> detectable_variation;  // found with `power`; nullopt for a single cell
  DraftCounts drafts;
  int prefixes = 0;  // prefixes for which a model ran
  bool passed() const { return impossible == 0 && p_value >= level; }
};

class Checker {
 public:
  // The session outlives this.
  explicit Checker(const Session& session, CheckOptions options = {})
      : session_(session), options_(std::move(options)) {}

  // Answers the prompt at this temperature plainly and with drafts, from the session's seed. The two must be equal at
  // temperature 0, and under `coupled` at any. nullopt when `rules` cancelled an answer.
  std::optional<TextCheck> same_text(std::span<const TokenId> prompt, const StopRules& rules, double temperature) const;

  // Draws continuations at the configured temperature with seeds from the session's on, by engines that are the
  // product's but for models that remember. `progress(done, total)` may end it by returning false: nullopt then.
  std::optional<LawCheck> same_law(std::span<const TokenId> prompt, double level,
                                   const std::function<bool(int, int)>& progress) const;

 private:
  GenerationResult answer(std::span<const TokenId> prompt, const StopRules& rules, EngineChoice choice) const;
  TextDifference difference(std::span<const TokenId> prompt, const GenerationResult& plain,
                            const GenerationResult& drafted) const;

  const Session& session_;
  CheckOptions options_;
};

}  // namespace tandem
