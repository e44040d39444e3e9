// tandem rows: the cost curve T(rows) beside what memory allows.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "kernels/cpu/yardstick.h"
#include "src/base/error.h"
#include "src/cli/backend_argument.h"
#include "src/cli/commands.h"
#include "src/cli/model_argument.h"
#include "src/cli/terminal.h"
#include "src/engine/cost_table.h"
#include "src/engine/row_costs.h"

namespace tandem {
namespace {

struct Arguments {
  std::string model;
  BackendArgument where;
  std::vector<int> rows{1, 2, 4, 8};
  int context = 256, repeats = 9, attention_at = 0;
  bool json = false;
};

nlohmann::ordered_json attention_json(Transformer& transformer, const Arguments& a) {
  std::vector<KvType> types{KvType::f16};
  if (stores_heads(KvType::q8_0, transformer.spec().head_dim)) types.push_back(KvType::q8_0);
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const DepthCost& cost : measure_depth_costs(transformer, a.attention_at, types, a.repeats)) {
    list.push_back({{"kv_cache", name_of(cost.kv_cache)},
                    {"cached", a.attention_at},
                    {"seconds_few_cached", cost.few_seconds},
                    {"seconds_median", cost.cached_seconds},
                    {"share", cost.attention_share()}});
  }
  return list;
}

// Cost tables are of passes with little behind them, where attention takes next to nothing.
constexpr int kLittleContext = 512;

// Puts the curve into the saved tables behind draft.length auto. How many took it.
int refresh(const Arguments& a, const ModelFile& model, const Transformer& transformer,
            const std::vector<RowCost>& costs) {
  if (a.context > kLittleContext) return 0;
  std::map<int, double> curve;
  for (const RowCost& cost : costs) curve[cost.rows] = cost.seconds_median;
  std::vector<RowSeconds> measured;
  for (const auto& [rows, seconds] : curve) {
    if (rows <= kMaxTreeNodes) measured.push_back({rows, seconds});
  }
  return refresh_cost_tables(model, transformer, measured);
}

nlohmann::ordered_json optional_json(const std::optional<double>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
}

std::optional<double> over(double seconds, const std::optional<double>& limit) {
  return limit ? std::optional(seconds / *limit) : std::nullopt;
}

nlohmann::ordered_json row_json(const RowCost& cost, const Transformer& transformer, const Yardstick& yardstick) {
  const std::size_t bytes = transformer.weights().bytes_per_pass();
  const double macs = transformer.weights().multiplies(cost.rows, logits_rows(cost.rows));
  const double median = cost.seconds_median;
  return {{"rows", cost.rows},
          {"seconds_median", median},
          {"seconds_min", cost.seconds_min},
          {"rows_per_second", cost.rows / median},
          {"weight_bytes_per_second", static_cast<double>(bytes) / median},
          {"multiplies", macs},
          {"over_memory_limit", optional_json(over(median, yardstick.memory_seconds(bytes)))},
          {"over_limit", optional_json(over(median, yardstick.seconds(bytes, macs)))}};
}

// The curve, and the yardstick taken in the same run.
std::pair<std::vector<RowCost>, Yardstick> measure_curve(Transformer& transformer, ThreadPool& pool,
                                                         const Arguments& a) {
  Yardstick yardstick{transformer.backend().device(), {}, {}};
  const bool on_host = !yardstick.device;
  const double before = on_host ? measure_read_bandwidth(pool) : 0;
  ProgressBar bar("rows");
  std::vector<RowCost> costs =
      measure_row_costs(transformer, a.rows, a.context, a.repeats, [&](int done, int total) { bar.show(done, total); });
  if (on_host) {
    yardstick.reading = (before + measure_read_bandwidth(pool)) / 2;
    yardstick.multiplies = measure_multiply_peak(pool);
  }
  return {std::move(costs), std::move(yardstick)};
}

nlohmann::ordered_json measure(const Arguments& a) {
  const ModelFile model = open_model(model_argument(a.model));
  const std::unique_ptr<ThreadPool> pool = a.where.pool();
  const std::unique_ptr<Backend> backend = a.where.backend(*pool);
  const int most = *std::max_element(a.rows.begin(), a.rows.end());
  Transformer transformer(model.spec, *model.file, *backend, std::max(most, 512),
                          std::max(a.context + most, a.attention_at + 1));
  const auto [costs, yardstick] = measure_curve(transformer, *pool, a);
  const std::size_t bytes = transformer.weights().bytes_per_pass();
  const std::optional<double> peak = yardstick.device ? yardstick.memory() : std::nullopt;
  nlohmann::ordered_json json = {
      {"model", model.path()},
      {"backend", backend->name()},
      {"device", yardstick.device ? nlohmann::ordered_json(yardstick.device->name) : nlohmann::ordered_json(nullptr)},
      {"device_peak_bytes_per_second", optional_json(peak)},
      {"threads", pool->threads()},
      {"context", a.context},
      {"read_bandwidth_bytes_per_second", optional_json(yardstick.reading)},
      {"weight_bytes_per_pass", bytes},
      {"seconds_memory_allows", optional_json(yardstick.memory_seconds(bytes))},
      {"multiply_peak_macs_per_second", optional_json(yardstick.multiplies)},
      {"rows", nlohmann::ordered_json::array()}};
  for (const RowCost& cost : costs) json["rows"].push_back(row_json(cost, transformer, yardstick));
  json["refreshed_cost_tables"] = refresh(a, model, transformer, costs);
  if (a.attention_at > 0) json["attention"] = attention_json(transformer, a);
  return json;
}

// The lines above the table: where it ran, and the limit that the last column compares with.
std::string heading(const nlohmann::ordered_json& d) {
  const double megabytes = d["weight_bytes_per_pass"].get<double>() / 1e6;
  std::string out;
  if (d["device"].is_null()) {
    out = fmt::format("{} on {} threads; {} cached tokens\nplain reading {:.1f} GB/s; ",
                      d["backend"].get<std::string>(), d["threads"].get<int>(), d["context"].get<int>(),
                      d["read_bandwidth_bytes_per_second"].get<double>() / 1e9);
  } else {
    const nlohmann::ordered_json& peak = d["device_peak_bytes_per_second"];
    out = fmt::format("{} on {}; {} cached tokens\nthe device's memory {}; ", d["backend"].get<std::string>(),
                      d["device"].get<std::string>(), d["context"].get<int>(),
                      peak.is_null() ? "does not tell its peak" : fmt::format("{:.1f} GB/s", peak.get<double>() / 1e9));
  }
  const nlohmann::ordered_json& allowed = d["seconds_memory_allows"];
  out += fmt::format("{:.1f} MB a pass{}\n", megabytes,
                     allowed.is_null() ? "" : fmt::format(": memory allows {:.2f} ms", 1e3 * allowed.get<double>()));
  if (const nlohmann::ordered_json& multiplies = d["multiply_peak_macs_per_second"]; !multiplies.is_null()) {
    out += fmt::format(
        "multiplies at most {:.0f} G/s; the limit of a pass is memory, or its multiplies at {:.0f} % of that\n",
        multiplies.get<double>() / 1e9, 100 * kReachablePeak);
  }
  return out;
}

std::string table(const nlohmann::ordered_json& rows) {
  std::string out = fmt::format("{:>6}{:>12}{:>12}{:>14}{:>12}{:>12}{:>14}\n", "rows", "median ms", "min ms", "rows/s",
                                "GB/s", "over first", "over limit");
  const double first = rows[0]["seconds_median"];
  for (const auto& row : rows) {
    const double median = row["seconds_median"];
    const nlohmann::ordered_json& limit = row["over_limit"];
    out += fmt::format("{:>6}{:>12.2f}{:>12.2f}{:>14.1f}{:>12.1f}{:>12.2f}{:>14}\n", row["rows"].get<int>(),
                       1e3 * median, 1e3 * row["seconds_min"].get<double>(), row["rows_per_second"].get<double>(),
                       row["weight_bytes_per_second"].get<double>() / 1e9, median / first,
                       limit.is_null() ? "-" : fmt::format("{:.2f}", limit.get<double>()));
  }
  return out;
}

int run(const Arguments& a) {
  const nlohmann::ordered_json d = measure(a);
  if (a.json) return write_json(d) ? 0 : 1;
  std::string out = heading(d) + table(d["rows"]);
  for (const auto& cost : d.value("attention", nlohmann::ordered_json::array())) {
    out += fmt::format("attention over {} cached tokens ({}): {:.1f} % of {:.2f} ms for one row\n",
                       cost["cached"].get<int>(), cost["kv_cache"].get<std::string>(),
                       100 * cost["share"].get<double>(), 1e3 * cost["seconds_median"].get<double>());
  }
  if (const int tables = d["refreshed_cost_tables"]; tables > 0) {
    out += fmt::format("draft.length auto: {} saved cost table{} took this curve\n", tables, tables > 1 ? "s" : "");
  }
  return write_stdout(out) ? 0 : 1;
}

}  // namespace

void add_rows(CLI::App& program, Command& chosen) {
  auto a = std::make_shared<Arguments>();
  CLI::App* command =
      program.add_subcommand("rows", "Seconds of one forward pass by row count, beside the memory limit");
  command->add_option("--model", a->model, "GGUF file, or its bare name in the model folder")->required();
  command
      ->add_option("--rows", a->rows, "Row counts, e.g. 1,2,4,8; above 64 as in prefill: logits of the last row only")
      ->delimiter(',')
      ->check(CLI::Range(1, 4096));
  command->add_option("--context", a->context, "Cached tokens under the rows")
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str();
  command
      ->add_option("--attention-at", a->attention_at,
                   "Also measure what attention over this many cached tokens takes of one row's pass (0: do not)")
      ->check(CLI::Range(0, 1 << 20));
  command->add_option("--repeats", a->repeats, "Rounds, interleaved")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  a->where.add_to(*command);
  command->add_flag("--json", a->json, "Print JSON");
  command->footer(
      "Saved cost tables (~/.cache/tandem/costs.json) that hold this very model with the same backend, device and\n"
      "threads, as target or draft, take the new curve, so that draft.length auto goes by it; the other model of a "
      "pair\n"
      "moves by the same factor. Not with --context above 512. A table is made by the first run that needs it.\n"
      "What every figure means: the section \"What the figures mean\" of README.md.\n"
      "Example: tandem rows --model qwen2.5-coder-1.5b-instruct-q4_k_m.gguf --rows 1,2,4,8,512");
  command->callback([a, &chosen] { chosen = [a] { return run(*a); }; });
}

}  // namespace tandem
