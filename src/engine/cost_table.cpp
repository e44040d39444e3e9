#include "src/engine/cost_table.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <fstream>
#include <map>
#include <optional>

#include "src/base/error.h"
#include "src/engine/row_costs.h"
#include "src/engine/user_cache.h"

namespace tandem {
namespace {

using Json = nlohmann::json;

constexpr const char* kFile = "costs.json";
constexpr std::size_t kMostTables = 64;  // the oldest beyond are forgotten
constexpr int kRepeats = 3;
constexpr const char* kPlus = " + ";  // between the models of a pair's key

std::int64_t seconds_since_1970() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string key_of(const ModelFile& file, const Transformer& model) {
  const FileIdentity identity = identity_of(file.path());
  // What draft.quantize and draft.head_rows make of a file shows in the bytes that a pass reads.
  const std::optional<Device> device = model.backend().device();
  return fmt::format("{}, {} bytes, time {}, {} bytes a pass, {}{} on {} threads of {}", identity.path, identity.size,
                     identity.nanoseconds_since_1970 / 1'000'000'000, model.weights().bytes_per_pass(),
                     model.backend().name(), device ? fmt::format(" ({})", device->name) : "",
                     model.backend().threads(), processor_name());
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

// A number in [low, high]; nothing for all else.
std::optional<double> number_in(const Json& value, double low, double high) {
  if (!value.is_number()) return std::nullopt;
  const auto number = value.get<double>();
  return number >= low && number <= high ? std::optional(number) : std::nullopt;
}

// Nothing for what no table of ours looks like.
std::optional<std::vector<RowSeconds>> from_json(const Json& list) {
  constexpr double kMostRows = 4096, kLeastSeconds = 1e-9, kMostSeconds = 1e4;
  if (!list.is_array()) return std::nullopt;
  std::vector<RowSeconds> costs;
  for (const Json& entry : list) {
    if (!entry.is_array() || entry.size() != 2 || !entry[0].is_number_integer()) return std::nullopt;
    const auto rows = number_in(entry[0], costs.empty() ? 1 : costs.back().rows + 1, kMostRows);
    const auto seconds = number_in(entry[1], kLeastSeconds, kMostSeconds);
    if (!rows || !seconds) return std::nullopt;
    costs.push_back({static_cast<int>(*rows), *seconds});
  }
  return costs;
}

std::optional<CostTable> table_of(const Json& entry) {
  if (!entry.is_object()) return std::nullopt;
  const auto target = entry.find("target"), draft = entry.find("draft"), time = entry.find("measured_at");
  if (target == entry.end() || draft == entry.end() || time == entry.end()) return std::nullopt;
  constexpr double kFarAway = 1e11;
  const auto target_costs = from_json(*target), draft_costs = from_json(*draft);
  const auto measured_at = number_in(*time, 0, kFarAway);
  if (!target_costs || target_costs->empty() || !draft_costs || !measured_at) return std::nullopt;
  return CostTable{*target_costs, *draft_costs, true, static_cast<std::int64_t>(*measured_at)};
}

using Tables = std::map<std::string, CostTable>;

Tables read_tables() {
  Tables tables;
  const Json all = read_user_cache(kFile);
  for (const auto& [key, entry] : all.items()) {
    if (std::optional<CostTable> table = table_of(entry)) tables.emplace(key, *std::move(table));
  }
  return tables;
}

void write_tables(Tables tables) {
  const auto time_of = [](const auto& entry) { return entry.second.measured_at; };
  while (tables.size() > kMostTables) tables.erase(std::ranges::min_element(tables, {}, time_of));
  Json all = Json::object();
  for (const auto& [key, table] : tables) {
    all[key] = {{"target", to_json(table.target)}, {"draft", to_json(table.draft)}, {"measured_at", table.measured_at}};
  }
  write_user_cache(kFile, all);
}

// New over old seconds of a row count: that of the nearest measured ones, linear between two.
class Ratios {
 public:
  Ratios(std::span<const RowSeconds> old, std::span<const RowSeconds> measured) {
    for (const RowSeconds& now : measured) {
      const auto before = std::ranges::find(old, now.rows, &RowSeconds::rows);
      if (before != old.end()) points_.push_back({now.rows, now.seconds / before->seconds});
    }
  }
  bool empty() const { return points_.empty(); }
  double at(int rows) const {
    const auto above = std::ranges::lower_bound(points_, rows, {}, &RowSeconds::rows);
    if (above == points_.end()) return points_.back().seconds;
    if (above == points_.begin() || above->rows == rows) return above->seconds;
    const RowSeconds& below = *std::prev(above);
    const double share = static_cast<double>(rows - below.rows) / (above->rows - below.rows);
    return below.seconds + share * (above->seconds - below.seconds);
  }

 private:
  std::vector<RowSeconds> points_;  // seconds: the ratio
};

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

std::string CostTable::measured_at_text() const {
  const std::time_t time = measured_at;
  std::tm utc{};
  gmtime_r(&time, &utc);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc)};
}

CostTable cost_table(const ModelFile& target_file, Transformer& target, const ModelFile* draft_file,
                     Transformer* draft) {
  // The pair is measured and kept together: the machine's memory has moods, and what counts is one against the other.
  std::string key = key_of(target_file, target);
  if (draft != nullptr) key += kPlus + key_of(*draft_file, *draft);
  Tables tables = read_tables();
  if (const auto known = tables.find(key); known != tables.end() && known->second.draft.empty() == (draft == nullptr)) {
    return known->second;
  }
  CostTable table{measured(target, {1, 2, 3, 4, 5, 6, 7, 8, 12, 16}), {}, false, seconds_since_1970()};
  if (draft != nullptr) table.draft = measured(*draft, {1, 2, 4, 8, 16, 64});
  tables[key] = table;
  write_tables(std::move(tables));
  return table;
}

int refresh_cost_tables(const ModelFile& file, const Transformer& model, std::span<const RowSeconds> measured) {
  const std::string key = key_of(file, model);
  Tables tables = read_tables();
  int changed = 0;
  for (auto& [name, table] : tables) {
    const bool is_target = name == key || name.starts_with(key + kPlus), is_draft = name.ends_with(kPlus + key);
    if (!is_target && !is_draft) continue;
    const Ratios ratios(is_target ? table.target : table.draft, measured);
    if (ratios.empty()) continue;
    for (RowSeconds& point : table.target) point.seconds *= ratios.at(is_target ? point.rows : 1);
    for (RowSeconds& point : table.draft) point.seconds *= ratios.at(is_draft ? point.rows : 1);
    table.measured_at = seconds_since_1970();
    ++changed;
  }
  if (changed > 0) write_tables(std::move(tables));
  return changed;
}

}  // namespace tandem
