#include "src/engine/sweep_pair.h"

#include <algorithm>
#include <cmath>

#include "src/base/error.h"

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;

struct Stage {
  const char* name;
  double StageSeconds::*seconds;
};
constexpr Stage kStages[] = {{"prefill", &StageSeconds::prefill},
                             {"draft", &StageSeconds::draft},
                             {"verify", &StageSeconds::verify},
                             {"sample", &StageSeconds::sample},
                             {"rollback", &StageSeconds::rollback}};

void require(bool holds, const char* what) {
  if (!holds) fail(ErrorKind::file, "expected {}", what);
}

std::int64_t count(const Json& json, const char* key) {
  const Json& value = json.at(key);
  require(value.is_number_integer() && value >= 0, "counts of 0 or more");
  return value;
}

double seconds(const Json& json, const char* key) {
  const double value = json.at(key).get<double>();
  require(std::isfinite(value) && value >= 0, "seconds of 0 or more");
  return value;
}

Json column(const std::vector<DraftCounts>& counts, std::int64_t DraftCounts::*field) {
  Json list = Json::array();
  for (const DraftCounts& each : counts) list.push_back(each.*field);
  return list;
}

void read_column(const Json& list, std::vector<DraftCounts>& counts, std::int64_t DraftCounts::*field) {
  require(list.is_array() && list.size() <= kMaxTreeNodes, "a list of counts by position");
  counts.resize(std::max(counts.size(), list.size()));
  for (std::size_t i = 0; i < list.size(); ++i) {
    require(list[i].is_number_integer() && list[i] >= 0, "counts of 0 or more");
    counts[i].*field = list[i];
  }
}

SweepRun run_from_json(const Json& json) {
  SweepRun run;
  run.answers = 1;
  run.tokens = count(json, "tokens");
  run.decoded = count(json, "decoded_tokens");
  run.decode_seconds = seconds(json, "decode_seconds");
  run.ttft_seconds = seconds(json, "ttft_seconds");
  run.steps = count(json, "steps");
  run.total = {count(json, "proposed"), count(json, "tested"), count(json, "accepted")};
  read_column(json.at("proposed_by_position"), run.by_position, &DraftCounts::proposed);
  read_column(json.at("tested_by_position"), run.by_position, &DraftCounts::tested);
  read_column(json.at("accepted_by_position"), run.by_position, &DraftCounts::accepted);
  for (const Stage& stage : kStages) run.seconds.*stage.seconds = seconds(json.at("seconds"), stage.name);
  run.wall_seconds = seconds(json.at("seconds"), "wall");
  run.stop_reason = json.value("stop_reason", "");
  return run;
}

}  // namespace

SweepRun::SweepRun(const GenerationResult& result)
    : answers(1),
      tokens(static_cast<std::int64_t>(result.ids.size())),
      ttft_seconds(result.ttft_seconds.value_or(0)),
      wall_seconds(result.wall_seconds),
      steps(result.metrics.steps),
      total(result.metrics.total),
      seconds(result.metrics.seconds),
      stop_reason(name_of(result.stop_reason)) {
  if (result.tpot_seconds) {
    decoded = tokens - 1;
    decode_seconds = *result.tpot_seconds * static_cast<double>(decoded);
  }
  for (const DraftCounts& counts : result.metrics.by_depth) {
    if (counts.proposed == 0) break;  // a deeper place is proposed only with those above it
    by_position.push_back(counts);
  }
}

void SweepRun::add(const SweepRun& other) {
  answers += other.answers;
  tokens += other.tokens;
  decoded += other.decoded;
  decode_seconds += other.decode_seconds;
  ttft_seconds += other.ttft_seconds;
  wall_seconds += other.wall_seconds;
  steps += other.steps;
  total.add(other.total);
  by_position.resize(std::max(by_position.size(), other.by_position.size()));
  for (std::size_t i = 0; i < other.by_position.size(); ++i) by_position[i].add(other.by_position[i]);
  for (const Stage& stage : kStages) seconds.*stage.seconds += other.seconds.*stage.seconds;
}

std::optional<double> SweepRun::seconds_a_token() const {
  if (decoded == 0 || !(decode_seconds > 0)) return std::nullopt;
  return decode_seconds / static_cast<double>(decoded);
}

std::optional<double> SweepPair::speedup() const {
  const std::optional<double> slow = plain.seconds_a_token(), fast = drafted.seconds_a_token();
  if (failed() || !slow || !fast) return std::nullopt;
  return *slow / *fast;
}

Json to_json(const SweepRun& run) {
  Json seconds = Json::object();
  double stages = 0;
  for (const Stage& stage : kStages) {
    seconds[stage.name] = run.seconds.*stage.seconds;
    stages += run.seconds.*stage.seconds;
  }
  seconds["other"] = std::max(0.0, run.wall_seconds - stages);
  seconds["wall"] = run.wall_seconds;
  Json json = {{"tokens", run.tokens},
               {"decoded_tokens", run.decoded},
               {"decode_seconds", run.decode_seconds},
               {"ttft_seconds", run.ttft_seconds},
               {"steps", run.steps},
               {"proposed", run.total.proposed},
               {"tested", run.total.tested},
               {"accepted", run.total.accepted},
               {"proposed_by_position", column(run.by_position, &DraftCounts::proposed)},
               {"tested_by_position", column(run.by_position, &DraftCounts::tested)},
               {"accepted_by_position", column(run.by_position, &DraftCounts::accepted)},
               {"seconds", std::move(seconds)}};
  if (!run.stop_reason.empty()) json["stop_reason"] = run.stop_reason;
  return json;
}

Json to_json(const SweepPair& pair) {
  Json json = {{"cell", pair.cell},
               {"prompt", pair.prompt},
               {"repeat", pair.repeat},
               {"start", pair.start},
               {"drafted_first", pair.drafted_first}};
  if (pair.failed()) {
    json["error"] = pair.error;
    return json;
  }
  json["plain"] = to_json(pair.plain);
  json["drafted"] = to_json(pair.drafted);
  json["differs_at"] = pair.differs_at ? Json(*pair.differs_at) : Json(nullptr);
  if (!pair.warning.empty()) json["warning"] = pair.warning;
  return json;
}

SweepPair pair_from_json(const Json& json) {
  SweepPair pair;
  pair.cell = json.at("cell");
  pair.prompt = json.at("prompt");
  pair.repeat = static_cast<int>(count(json, "repeat"));
  pair.start = static_cast<int>(count(json, "start"));
  pair.drafted_first = json.at("drafted_first");
  pair.error = json.value("error", "");
  if (pair.failed()) return pair;
  pair.plain = run_from_json(json.at("plain"));
  pair.drafted = run_from_json(json.at("drafted"));
  if (!json.at("differs_at").is_null()) pair.differs_at = static_cast<int>(count(json, "differs_at"));
  pair.warning = json.value("warning", "");
  return pair;
}

}  // namespace tandem
