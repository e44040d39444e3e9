#include "src/engine/sweep_cells.h"

#include <algorithm>
#include <map>
#include <set>

#include "src/base/error.h"
#include "src/engine/file_hash.h"

namespace tandem {
namespace {

constexpr const char* kPlain = "length 0 and kind none draft nothing: one plain cell a temperature";
constexpr const char* kThreshold = "thresholds are for draft models: n-gram drafts run with the first one only";
constexpr const char* kGreedy = "at temperature 0 all rules accept alike: only the first one runs";
constexpr const char* kTwice = "listed twice: runs once";

// What all cells of one grid fall back to where a setting decides nothing.
struct First {
  double threshold;
  std::string rule;
};

// Gives settings that would run alike one form. Returns why it changed something, or nullptr.
const char* simplify(Config& config, const First& first) {
  DraftConfig& draft = config.draft;
  if (config.sampling.temperature == 0) {
    if (config.verify.rule != first.rule) {
      config.verify.rule = first.rule;
      simplify(config, first);
      return kGreedy;
    }
  }
  if (draft.kind == "none" || draft.length == 0) {
    draft.kind = "none";
    draft.length = 0;
    draft.min_probability = first.threshold;
    config.verify.rule = first.rule;
    return kPlain;
  }
  if (draft.kind == "ngram" && draft.min_probability != first.threshold) {
    draft.min_probability = first.threshold;
    return kThreshold;
  }
  return nullptr;
}

// The settings of every cell, the last list changing fastest.
std::vector<std::vector<std::string>> settings_of(const SweepGrid& grid) {
  std::vector<std::vector<std::string>> all{{}};
  const auto spread = [&](const char* key, const std::vector<std::string>& values) {
    if (values.empty()) return;
    std::vector<std::vector<std::string>> wider;
    for (const std::vector<std::string>& settings : all) {
      for (const std::string& value : values) {
        wider.push_back(settings);
        wider.back().push_back(fmt::format("{}={}", key, value));
      }
    }
    all = std::move(wider);
  };
  spread("sampling.temperature", grid.temperatures);
  spread("draft.kind", grid.kinds);
  spread("draft.length", grid.lengths);
  spread("draft.min_probability", grid.thresholds);
  spread("verify.rule", grid.rules);
  return all;
}

}  // namespace

Config without_places(Config config) {
  config.target.model.clear();
  config.draft.model.clear();
  if (!config.constraint.grammar.empty()) config.constraint.grammar = "grammar";
  if (!config.constraint.json_schema.empty()) config.constraint.json_schema = "json_schema";
  return config;
}

std::string SweepCell::name() const {
  std::string name = config.draft.kind;
  if (!plain()) {
    name += fmt::format(", length {}, threshold {}, rule {}",
                        config.draft.length ? fmt::to_string(*config.draft.length) : "auto",
                        config.draft.min_probability, config.verify.rule);
  }
  return name + fmt::format(", temperature {}", config.sampling.temperature);
}

std::string SweepCell::key() const { return text_sha256(to_yaml(without_places(config))).substr(0, 12); }

bool SweepCell::promises_plain_text() const {
  return plain() || config.sampling.temperature == 0 || config.verify.rule == "coupled";
}

SweepCells make_cells(const SweepGrid& grid, const std::function<Config(const std::vector<std::string>&)>& read) {
  SweepCells made;
  std::set<std::string> names;
  std::map<std::string, int> left_out;
  std::optional<First> first;
  for (const std::vector<std::string>& settings : settings_of(grid)) {
    SweepCell cell{read(settings)};
    if (cell.config.stop.time_limit_seconds) {
      cell.config.options.refuse("stop.time_limit_seconds",
                                 "answers that a clock cuts cannot be compared; a sweep needs none");
    }
    if (!first) first = First{cell.config.draft.min_probability, cell.config.verify.rule};
    const char* why = simplify(cell.config, *first);
    if (names.insert(cell.name()).second) {
      made.cells.push_back(std::move(cell));
    } else {
      ++left_out[cell.plain() ? kPlain : why != nullptr ? why : kTwice];
    }
  }
  for (const auto& [why, count] : left_out) made.notes.push_back(fmt::format("{} ({} left out)", why, count));
  return made;
}

Config session_config(const std::vector<SweepCell>& cells) {
  const auto any = [&](auto&& holds) {
    return std::ranges::any_of(cells, [&](const SweepCell& cell) { return holds(cell.config.draft); });
  };
  const bool model = any([](const DraftConfig& draft) { return draft.uses_model(); });
  const bool ngram = any([](const DraftConfig& draft) { return draft.uses_ngram(); });
  const bool recycle = any([](const DraftConfig& draft) { return draft.kind == "recycle"; });
  Config config = cells.front().config;
  config.draft.kind = model && ngram ? "hybrid" : model ? "model" : ngram ? "ngram" : recycle ? "recycle" : "none";
  if (any([](const DraftConfig& draft) { return draft.kind != "none" && !draft.length; })) config.draft.length.reset();
  return config;
}

}  // namespace tandem
