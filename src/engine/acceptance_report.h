// What `tandem accept` says: counts gathered by temperature and task, as JSON and as tables for people.
#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/engine/acceptance.h"
#include "src/engine/draft_economics.h"
#include "src/engine/intervals.h"
#include "src/text/vocabulary_pair.h"

namespace tandem {

// Answers together. The shares are one a prompt.
struct AcceptanceGroup {
  AcceptanceCounts counts;
  std::vector<Share> accepted_of_tested, tokens_of_steps;

  void add(const AcceptanceCounts& answer);
};

// Everything at one temperature.
struct TemperatureAcceptance {
  struct Task {
    std::string name;  // empty: prompts without one
    AcceptanceGroup group;
  };
  double temperature = 0;
  AcceptanceGroup all;
  std::vector<Task> tasks;  // in the order of their first prompts

  void add(std::string_view task, const AcceptanceCounts& answer);
};

// Two model files by name, and how their vocabularies compare.
struct VocabularyReport {
  std::string target, draft;
  VocabularyComparison comparison;
  bool retokenize = false;  // the draft is to work through text, which only vocabularies that differ need

  bool fits() const { return (comparison.match() == VocabularyMatch::different) == retokenize; }
};

// Opens the two files of a config that drafts with a model, without loading weights. Throws Error for a file that is
// none; never for vocabularies that differ.
VocabularyReport compare_vocabularies(const Config& config);

nlohmann::ordered_json to_json(const VocabularyReport& report);
nlohmann::ordered_json to_json(const TemperatureAcceptance& found, const CostModel& costs);

// Lines for people, each with its newline.
std::string to_text(const VocabularyReport& report);
std::string to_text(const TemperatureAcceptance& found, const CostModel& costs, std::string_view rule);

}  // namespace tandem
