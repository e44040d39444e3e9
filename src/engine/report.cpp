#include "src/engine/report.h"

#include <algorithm>
#include <cmath>

#include "src/base/error.h"
#include "src/engine/draft_economics.h"
#include "src/engine/file_hash.h"

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;

// null for a number that was not measured or is not finite.
Json number(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? Json(*value) : Json(nullptr);
}

std::optional<double> ratio(double part, double whole) {
  if (whole <= 0) return std::nullopt;
  return part / whole;
}

double other_seconds(const Metrics& m, double wall) {
  const StageSeconds& s = m.seconds;
  return std::max(0.0, wall - s.prefill - s.draft - s.verify - s.sample - s.rollback);
}

Json counts_json(const DraftCounts& c) {
  return {{"proposed", c.proposed},
          {"tested", c.tested},
          {"accepted", c.accepted},
          {"rejected", c.rejected},
          {"untested", c.untested},
          {"acceptance_rate", number(ratio(static_cast<double>(c.accepted), static_cast<double>(c.tested)))}};
}

int deepest(const Metrics& m) {
  int depth = 0;
  for (int i = 0; i < kMaxTreeNodes; ++i) {
    if (m.by_depth[i].proposed > 0) depth = i + 1;
  }
  return depth;
}

Json by_depth(const Metrics& m, std::int64_t DraftCounts::*field) {
  Json list = Json::array();
  for (int i = 0; i < deepest(m); ++i) list.push_back(m.by_depth[i].*field);
  return list;
}

Json by_source(const Metrics& m) {
  Json sources = Json::object();
  for (int i = 0; i < kDraftSources; ++i) {
    if (m.by_source[i].proposed > 0) sources[std::string(kDraftSourceNames[i])] = counts_json(m.by_source[i]);
  }
  return sources;
}

// Tokens that the constraint foretold and the target took.
std::int64_t forced_tokens(const Metrics& m) {
  return m.by_source[static_cast<std::size_t>(DraftSource::grammar)].accepted;
}

Json seconds_json(const Metrics& m, double load, double wall) {
  const StageSeconds& s = m.seconds;
  return {{"load", load},
          {"prefill", s.prefill},
          {"draft", s.draft},
          {"verify", s.verify},
          {"sample", s.sample},
          {"rollback", s.rollback},
          {"other", other_seconds(m, wall)},
          {"wall", wall}};
}

std::optional<double> mean_length(const Metrics& m) {
  return ratio(static_cast<double>(m.total.accepted + m.steps), static_cast<double>(m.steps));
}

std::optional<double> acceptance(const Metrics& m) {
  return ratio(static_cast<double>(m.total.accepted), static_cast<double>(m.total.tested));
}

struct Totals {
  Metrics metrics;
  std::int64_t prompt_tokens = 0;
  double wall_seconds = 0;
  double decoded = 0, decode_seconds = 0;  // tokens after the first of each answer, and their time
};

Totals totals_of(const std::vector<GenerationResult>& results) {
  Totals t;
  for (const GenerationResult& r : results) {
    t.metrics.add(r.metrics);
    t.prompt_tokens += r.prompt_tokens;
    t.wall_seconds += r.wall_seconds;
    if (r.tpot_seconds) {
      t.decoded += static_cast<double>(r.ids.size() - 1);
      t.decode_seconds += *r.tpot_seconds * static_cast<double>(r.ids.size() - 1);
    }
  }
  return t;
}

Json logprob_json(const TokenLogprob& token, const Tokenizer& tokenizer) {
  return {
      {"id", token.id}, {"text", to_valid_utf8(tokenizer.bytes(token.id, true))}, {"logprob", number(token.logprob)}};
}

Json logprobs_json(const GenerationResult& r, const Tokenizer& tokenizer) {
  Json list = Json::array();
  for (const TokenLogprobs& token : r.logprobs) {
    Json top = Json::array();
    for (const TokenLogprob& alternative : token.top()) top.push_back(logprob_json(alternative, tokenizer));
    list.push_back(logprob_json(token.drawn, tokenizer));
    list.back()["top"] = std::move(top);
  }
  return list;
}

Json model_json(const ModelFile& model, KvType kv_type) {
  return {{"path", to_valid_utf8(model.path())},
          {"name", to_valid_utf8(model.file->text_or("general.name", ""))},
          {"sha256", file_sha256(model.path())},
          {"architecture", model.spec.architecture},
          {"kv_cache", name_of(kv_type)}};
}

Json corpus_json(const CorpusUse& corpus) {
  Json skipped = Json::array();
  for (const std::string& name : corpus.skipped) skipped.push_back(to_valid_utf8(name));
  return {{"origin", corpus.origin},
          {"files", corpus.files},
          {"tokens", corpus.tokens()},
          {"bytes", corpus.index->bytes()},
          {"skipped", skipped}};
}

// Seconds of a pass over one row, and where they come from.
struct SingleRow {
  double seconds;
  std::string where;
};

// The answer's own passes without a draft tell most. With few of them its other passes do, by the shape of T(rows);
// so a table saved in another state of the machine's memory does not mislead.
SingleRow single_row(const Metrics& m, const Session& session) {
  constexpr int kEnough = 4;
  const auto passes = m.steps_by_rows[1];
  if (passes >= kEnough)
    return {m.seconds_by_rows[1] / static_cast<double>(passes), "passes of one row in this answer"};
  if (!session.costs()) return {session.single_row_seconds(), "passes of one row at load"};
  const CostTable& table = *session.costs();
  const PassCosts costs(table.target);
  double expected = 0, taken = 0;
  for (int rows = 1; rows <= kMaxTreeNodes; ++rows) {
    expected += static_cast<double>(m.steps_by_rows[rows]) * costs.seconds(rows);
    taken += m.seconds_by_rows[rows];
  }
  return {costs.seconds(1) * (expected > 0 ? taken / expected : 1),
          fmt::format("T(rows), {} {}", table.origin(), table.measured_at_text())};
}

std::string reason_sentence(const GenerationResult& r, const Session& session) {
  switch (r.stop_reason) {
    case StopReason::stop:
      return "stop";
    case StopReason::length:
      return fmt::format("length (WARNING: cut at stop.max_tokens {})", r.ids.size());
    case StopReason::context:
      return fmt::format("context (WARNING: the context of {} tokens is full, target.context)", session.context());
    default:
      return std::string(name_of(r.stop_reason));
  }
}

}  // namespace

Json costs_json(const CostTable& costs) {
  const auto list = [](const std::vector<RowSeconds>& curve) {
    Json points = Json::array();
    for (const RowSeconds& point : curve) points.push_back({{"rows", point.rows}, {"seconds", point.seconds}});
    return points;
  };
  return {{"origin", costs.origin()},
          {"measured_at", costs.measured_at_text()},
          {"target", list(costs.target)},
          {"draft", list(costs.draft)}};
}

Json settings_json(const Session& session) {
  const Config& c = session.config();
  const KvType kv = session.target_kv_type();
  const std::string effective = to_yaml(c);
  const std::optional<Device> device = session.backend().device();
  Json settings = {
      {"version", kVersion},
      {"config", to_valid_utf8(c.source)},
      {"config_hash", text_sha256(effective)},
      {"target", model_json(session.target(), kv)},
      {"draft", session.draft() ? model_json(*session.draft(), session.draft_kv_type()) : Json(nullptr)},
      {"tokenizer", kind_of(session.tokenizer().vocabulary())},
      {"template", session.chat() ? Json(session.template_name()) : Json(nullptr)},
      {"backend", session.backend().name()},
      {"device", device ? Json(device->name) : Json(nullptr)},
      {"threads", session.backend().threads()},
      {"context", session.context()},
      {"seed", session.seed()},
      {"verify_rule", c.verify.rule},
      {"lossless", session.lossless()},
      {"draft_kind", c.draft.kind},
      {"draft_length", c.draft.length ? Json(*c.draft.length) : Json("auto")},
      {"constraint", session.constraint() ? Json(to_valid_utf8(session.constraint()->name())) : Json(nullptr)},
      {"corpus", session.corpus() ? corpus_json(*session.corpus()) : Json(nullptr)},
      {"cost_table", session.costs() ? costs_json(*session.costs()) : Json(nullptr)}};
  settings["effective_yaml"] = to_valid_utf8(effective);
  return settings;
}

Json to_json(const GenerationResult& r, const Session& session) {
  const Metrics& m = r.metrics;
  Json json = {{"ids", r.ids},
               {"text", to_valid_utf8(r.text)},
               {"stop_reason", name_of(r.stop_reason)},
               {"prompt_tokens", r.prompt_tokens},
               {"cached_prompt_tokens", r.cached_tokens},
               {"generated_tokens", r.ids.size()},
               {"ttft_seconds", number(r.ttft_seconds)},
               {"tpot_seconds", number(r.tpot_seconds)},
               {"decode_tokens_per_second", number(r.decode_tokens_per_second)},
               {"steps", m.steps},
               {"proposed", m.total.proposed},
               {"tested", m.total.tested},
               {"accepted", m.total.accepted},
               {"rejected", m.total.rejected},
               {"untested", m.total.untested},
               {"cut", m.cut},
               {"acceptance_rate", number(acceptance(m))},
               {"mean_accepted_length", number(mean_length(m))},
               {"proposed_by_position", by_depth(m, &DraftCounts::proposed)},
               {"tested_by_position", by_depth(m, &DraftCounts::tested)},
               {"accepted_by_position", by_depth(m, &DraftCounts::accepted)},
               {"by_source", by_source(m)},
               {"forced_tokens", forced_tokens(m)},
               {"seconds", seconds_json(m, session.load_seconds(), r.wall_seconds)},
               {"explanation", explanation(r, session)}};
  if (session.config().logprobs > 0) json["logprobs"] = logprobs_json(r, session.tokenizer());
  return json;
}

Json totals_json(const std::vector<GenerationResult>& results, const Session& session) {
  const Totals t = totals_of(results);
  return {{"prompts", results.size()},
          {"prompt_tokens", t.prompt_tokens},
          {"generated_tokens", t.metrics.generated},
          {"decode_tokens_per_second", number(ratio(t.decoded, t.decode_seconds))},
          {"tpot_seconds", number(ratio(t.decode_seconds, t.decoded))},
          {"steps", t.metrics.steps},
          {"proposed", t.metrics.total.proposed},
          {"tested", t.metrics.total.tested},
          {"accepted", t.metrics.total.accepted},
          {"rejected", t.metrics.total.rejected},
          {"untested", t.metrics.total.untested},
          {"cut", t.metrics.cut},
          {"acceptance_rate", number(acceptance(t.metrics))},
          {"mean_accepted_length", number(mean_length(t.metrics))},
          {"accepted_by_position", by_depth(t.metrics, &DraftCounts::accepted)},
          {"by_source", by_source(t.metrics)},
          {"forced_tokens", forced_tokens(t.metrics)},
          {"seconds", seconds_json(t.metrics, session.load_seconds(), t.wall_seconds)}};
}

std::string human_totals(const std::vector<GenerationResult>& results) {
  const Totals t = totals_of(results);
  std::string text =
      fmt::format("all {}: {} prompt tokens, {} answer tokens", results.size(), t.prompt_tokens, t.metrics.generated);
  if (const auto rate = ratio(t.decoded, t.decode_seconds)) text += fmt::format(", {:.1f} tokens/s", *rate);
  if (const auto rate = acceptance(t.metrics)) {
    text += fmt::format("; {:.0f} % of tested drafts accepted, {:.2f} tokens a step", 100 * *rate,
                        mean_length(t.metrics).value_or(1));
  }
  return text;
}

std::string turn_summary(const GenerationResult& r, const Session& session) {
  std::string text = fmt::format("{} tokens", r.ids.size());
  if (r.decode_tokens_per_second) text += fmt::format(", {:.1f} tokens/s", *r.decode_tokens_per_second);
  if (const auto rate = acceptance(r.metrics)) text += fmt::format(", {:.0f} % of drafts accepted", 100 * *rate);
  text += fmt::format("; read {} of {} prompt tokens", r.prompt_tokens - r.cached_tokens, r.prompt_tokens);
  text += fmt::format("; context {} of {}", r.prompt_tokens + static_cast<int>(r.ids.size()), session.context());
  return text + "; " + reason_sentence(r, session);
}

std::string explanation(const GenerationResult& r, const Session& session) {
  const Metrics& m = r.metrics;
  if (session.config().draft.kind == "none") return "plain decoding: nothing was drafted";
  if (m.steps < 8 || !r.tpot_seconds) return "too short an answer to judge its speed";
  if (m.total.proposed == 0) return "no draft was proposed, so this ran as plain decoding";
  const SingleRow row = single_row(m, session);
  const double single = row.seconds + m.seconds.sample / static_cast<double>(m.generated);
  const double length = static_cast<double>(m.total.proposed) / static_cast<double>(m.steps);
  const double step =
      (m.seconds.draft + m.seconds.verify + m.seconds.sample + m.seconds.rollback) / static_cast<double>(m.steps);
  const double even = break_even(step / single, length);
  return fmt::format(
      "about {:.2f}x plain, estimated from {} ({:.1f} ms a row); acceptance {:.2f} at mean length {:.2f}; "
      "break-even {}",
      single / *r.tpot_seconds, row.where, 1e3 * row.seconds, acceptance(m).value_or(0), mean_length(m).value_or(1),
      std::isfinite(even) ? fmt::format("{:.2f}", even) : std::string("not reachable at this length"));
}

std::string human_summary(const GenerationResult& r, const Session& session) {
  const Metrics& m = r.metrics;
  std::string text = fmt::format("prompt: {} tokens", r.prompt_tokens);
  if (r.cached_tokens > 0) text += fmt::format(" ({} cached)", r.cached_tokens);
  text += fmt::format(" in {:.2f} s", m.seconds.prefill);
  if (m.seconds.prefill > 0)
    text += fmt::format(" ({:.0f} tokens/s)", (r.prompt_tokens - r.cached_tokens) / m.seconds.prefill);
  if (r.ttft_seconds) text += fmt::format(", first token after {:.2f} s", *r.ttft_seconds);
  text += fmt::format("; load {:.2f} s\n", session.load_seconds());
  text += fmt::format("answer: {} tokens", r.ids.size());
  if (r.decode_tokens_per_second)
    text += fmt::format(", {:.1f} tokens/s ({:.1f} ms a token)", *r.decode_tokens_per_second, 1e3 * *r.tpot_seconds);
  text += fmt::format("; stop reason: {}; seed {}\n", reason_sentence(r, session), session.seed());
  if (m.total.proposed > 0) {
    text += fmt::format(
        "drafts: {} steps, {} proposed, {} tested, {} accepted ({:.0f} % of tested), {:.2f} tokens a step\n", m.steps,
        m.total.proposed, m.total.tested, m.total.accepted, 100 * acceptance(m).value_or(0),
        mean_length(m).value_or(1));
  }
  if (session.constraint()) {
    text += fmt::format("constraint: {}; {} of {} tokens forced\n", to_valid_utf8(session.constraint()->name()),
                        forced_tokens(m), r.ids.size());
  }
  if (!session.lossless()) {
    text += fmt::format("rule: {} is lossy: the text does not follow the target's distribution\n",
                        session.config().verify.rule);
  }
  if (const double wall = r.wall_seconds; wall > 0) {
    const StageSeconds& s = m.seconds;
    text += fmt::format(
        "time: prefill {:.0f} %, draft {:.0f} %, verify {:.0f} %, sample {:.1f} %, rollback {:.1f} %, other {:.1f} %\n",
        100 * s.prefill / wall, 100 * s.draft / wall, 100 * s.verify / wall, 100 * s.sample / wall,
        100 * s.rollback / wall, 100 * other_seconds(m, wall) / wall);
  }
  return text + "speed: " + explanation(r, session);
}

}  // namespace tandem
