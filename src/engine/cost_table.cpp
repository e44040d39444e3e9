#include "src/engine/cost_table.h"

#include <fstream>
#include <optional>

#include "src/base/error.h"
#include "src/engine/row_costs.h"
#include "src/engine/user_cache.h"

namespace tandem {
namespace {

using Json = nlohmann::json;

constexpr const char* kFile = "costs.json";
constexpr std::size_t kMostTables = 64;  // what is beyond is forgotten
constexpr int kRepeats = 3;

std::string key_of(const ModelFile& file, const Transformer& model) {
  const FileIdentity identity = identity_of(file.path());
  // What draft.quantize and draft.head_rows make of a file shows in the bytes that a pass reads.
  return fmt::format("{}, {} bytes, time {}, {} bytes a pass, {} on {} threads of {}", identity.path, identity.size,
                     identity.time, model.weights().bytes_per_pass(), model.backend().name(), model.backend().threads(),
                     processor_name());
}

std::vector<RowSeconds> measured(Transformer& model, std::vector<int> rows) {
  const int limit = std::min(model.max_positions(), model.spec().context);
  std::erase_if(rows, [limit](int count) { return count > limit; });
  std::vector<RowSeconds> costs;
  for (const RowCost& cost : measure_row_costs(model, rows, 0, kRepeats)) {
    costs.push_back({cost.rows, cost.seconds_median});
  }
  return costs;
}

Json to_json(const std::vector<RowSeconds>& costs) {
  Json list = Json::array();
  for (const RowSeconds& cost : costs) list.push_back({cost.rows, cost.seconds});
  return list;
}

// Nothing for what no table of ours looks like.
std::optional<std::vector<RowSeconds>> from_json(const Json& list) {
  if (!list.is_array()) return std::nullopt;
  std::vector<RowSeconds> costs;
  for (const Json& entry : list) {
    if (!entry.is_array() || entry.size() != 2 || !entry[0].is_number_integer() || !entry[1].is_number()) {
      return std::nullopt;
    }
    const RowSeconds cost{entry[0].get<int>(), entry[1].get<double>()};
    if (cost.rows <= (costs.empty() ? 0 : costs.back().rows) || !(cost.seconds > 0)) return std::nullopt;
    costs.push_back(cost);
  }
  return costs;
}

std::optional<CostTable> saved(const Json& tables, const std::string& key, bool with_draft) {
  const auto entry = tables.find(key);
  if (entry == tables.end() || !entry->is_object()) return std::nullopt;
  const auto target = from_json(entry->value("target", Json()));
  const auto draft = from_json(entry->value("draft", Json()));
  if (!target || target->empty() || !draft || draft->empty() == with_draft) return std::nullopt;
  return CostTable{*target, *draft, "saved"};
}

}  // namespace

std::string processor_name() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown processor";
}

CostModel CostTable::model() const {
  CostModel costs;
  costs.target = PassCosts(target);
  if (!draft.empty()) costs.draft = PassCosts(draft);
  return costs;
}

CostTable cost_table(const ModelFile& target_file, Transformer& target, const ModelFile* draft_file,
                     Transformer* draft) {
  // The pair is measured and kept together: the machine's memory has moods, and what counts is one against the other.
  std::string key = key_of(target_file, target);
  if (draft != nullptr) key += " + " + key_of(*draft_file, *draft);
  Json tables = read_user_cache(kFile);
  if (std::optional<CostTable> table = saved(tables, key, draft != nullptr)) return *table;
  CostTable table{measured(target, {1, 2, 3, 4, 5, 6, 7, 8, 12, 16}), {}, "measured at load"};
  if (draft != nullptr) table.draft = measured(*draft, {1, 2, 4, 8, 16, 64});
  while (tables.size() >= kMostTables) tables.erase(tables.begin());
  tables[key] = {{"target", to_json(table.target)}, {"draft", to_json(table.draft)}};
  write_user_cache(kFile, tables);
  return table;
}

}  // namespace tandem
