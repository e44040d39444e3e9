// The file of a recording: two lines of text, of which the second is a JSON header, then numbers as they lie in memory
// (little-endian). The header names the size and SHA-256 of what follows, so that a damaged file never replays.
#include "src/engine/recording.h"

#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <sstream>

#include "src/base/atomic_file.h"
#include "src/base/error.h"
#include "src/engine/file_hash.h"
#include "src/engine/recording_bytes.h"

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kMagic = "tandem recording ";
constexpr int kFormat = 1;
constexpr std::string_view kKind = "a recording of tandem replay";

Json costs_json(const std::vector<RowSeconds>& costs) {
  Json list = Json::array();
  for (const RowSeconds& cost : costs) list.push_back({cost.rows, cost.seconds});
  return list;
}

std::vector<RowSeconds> costs_of(const Json& list) {
  std::vector<RowSeconds> costs;
  for (const Json& cost : list) costs.push_back({cost.at(0).get<int>(), cost.at(1).get<double>()});
  return costs;
}

// A bias may be -inf, which JSON has no number for.
Json bias_json(const std::vector<std::pair<TokenId, double>>& bias) {
  Json list = Json::array();
  for (const auto& [token, value] : bias) list.push_back({token, std::isinf(value) ? Json("-inf") : Json(value)});
  return list;
}

std::vector<std::pair<TokenId, double>> bias_of(const Json& list) {
  std::vector<std::pair<TokenId, double>> bias;
  for (const Json& entry : list) {
    const Json& value = entry.at(1);
    bias.emplace_back(entry.at(0).get<TokenId>(),
                      value.is_string() ? -std::numeric_limits<double>::infinity() : value.get<double>());
  }
  return bias;
}

Json runs_json(const std::vector<TokenRun>& runs) {
  Json list = Json::array();
  for (const TokenRun& run : runs) list.push_back({run.begin, run.end});
  return list;
}

std::vector<TokenRun> runs_of(const Json& list) {
  std::vector<TokenRun> runs;
  for (const Json& run : list) runs.push_back({run.at(0).get<TokenId>(), run.at(1).get<TokenId>()});
  return runs;
}

Json to_json(const RecordingSettings& s) {
  return {{"temperature", s.sampling.temperature},
          {"top_k", s.sampling.top_k},
          {"top_p", s.sampling.top_p},
          {"min_p", s.sampling.min_p},
          {"repetition_penalty", s.sampling.repetition_penalty},
          {"presence_penalty", s.sampling.presence_penalty},
          {"frequency_penalty", s.sampling.frequency_penalty},
          {"penalty_window", s.sampling.penalty_window},
          {"logit_bias", bias_json(s.sampling.logit_bias)},
          {"seed", s.noise.seed},
          {"stream", s.noise.stream},
          {"rule", s.rule},
          {"kind", s.kind},
          {"longest", s.longest},
          {"context", s.context},
          {"draft_context", s.draft_context},
          {"prefill_chunk", s.prefill_chunk},
          {"max_nodes", s.max_nodes},
          {"ngram_min_match", s.ngram_min_match},
          {"ngram_max_match", s.ngram_max_match},
          {"min_probability", s.min_probability},
          {"refresh_costs", s.refresh_costs},
          {"vocabulary", s.vocabulary},
          {"draft_head_rows", s.draft_head_rows},
          {"draft_bytes", s.draft_bytes},
          {"draft_bytes_a_head_row", s.draft_bytes_a_head_row},
          {"end_ids", s.end_ids},
          {"usable", runs_json(s.usable)},
          {"target_costs", costs_json(s.target_costs)},
          {"draft_costs", costs_json(s.draft_costs)}};
}

RecordingSettings settings_of(const Json& json) {
  RecordingSettings s;
  json.at("temperature").get_to(s.sampling.temperature);
  json.at("top_k").get_to(s.sampling.top_k);
  json.at("top_p").get_to(s.sampling.top_p);
  json.at("min_p").get_to(s.sampling.min_p);
  json.at("repetition_penalty").get_to(s.sampling.repetition_penalty);
  json.at("presence_penalty").get_to(s.sampling.presence_penalty);
  json.at("frequency_penalty").get_to(s.sampling.frequency_penalty);
  json.at("penalty_window").get_to(s.sampling.penalty_window);
  s.sampling.logit_bias = bias_of(json.at("logit_bias"));
  json.at("seed").get_to(s.noise.seed);
  json.at("stream").get_to(s.noise.stream);
  json.at("rule").get_to(s.rule);
  json.at("kind").get_to(s.kind);
  json.at("longest").get_to(s.longest);
  json.at("context").get_to(s.context);
  json.at("draft_context").get_to(s.draft_context);
  json.at("prefill_chunk").get_to(s.prefill_chunk);
  json.at("max_nodes").get_to(s.max_nodes);
  json.at("ngram_min_match").get_to(s.ngram_min_match);
  json.at("ngram_max_match").get_to(s.ngram_max_match);
  json.at("min_probability").get_to(s.min_probability);
  json.at("refresh_costs").get_to(s.refresh_costs);
  json.at("vocabulary").get_to(s.vocabulary);
  json.at("draft_head_rows").get_to(s.draft_head_rows);
  json.at("draft_bytes").get_to(s.draft_bytes);
  json.at("draft_bytes_a_head_row").get_to(s.draft_bytes_a_head_row);
  json.at("end_ids").get_to(s.end_ids);
  s.usable = runs_of(json.at("usable"));
  s.target_costs = costs_of(json.at("target_costs"));
  s.draft_costs = costs_of(json.at("draft_costs"));
  return s;
}

struct Header {
  Json json;
  std::string_view body;
};

// The two lines of text and what follows them, each part checked before the next is read.
Header split(std::string_view content, const std::string& path) {
  if (!content.starts_with(kMagic)) {
    fail(ErrorKind::file, "{}: expected {}, which begins with \"{}{}\"", path, kKind, kMagic, kFormat);
  }
  const std::size_t line = content.find('\n');
  const std::size_t second = line == content.npos ? content.npos : content.find('\n', line + 1);
  if (second == content.npos) fail(ErrorKind::file, "{}: cut: {} bytes end within the header", path, content.size());
  const std::string_view version = content.substr(kMagic.size(), line - kMagic.size());
  if (version != std::to_string(kFormat)) {
    fail(ErrorKind::file, "{}: expected version {}, got {}: record again with this tandem", path, kFormat,
         printable(version));
  }
  Header header{Json::parse(content.substr(line + 1, second - line - 1), nullptr, false), content.substr(second + 1)};
  if (!header.json.is_object()) fail(ErrorKind::file, "{}: changed: its header is no JSON object", path);
  return header;
}

// What a replay takes memory or counts by.
void check_settings(const RecordingSettings& s, const std::string& path) {
  constexpr int kMost = 1 << 24;
  const auto within = [&](const char* name, int value, int low, int high) {
    if (value < low || value > high) {
      fail(ErrorKind::file, "{}: changed: {}: expected {}..{}, got {}", path, name, low, high, value);
    }
  };
  within("longest", s.longest, 1, kMaxTreeNodes - 1);
  within("context", s.context, 1, kMost);
  within("draft_context", s.draft_context, 0, s.context);
  within("prefill_chunk", s.prefill_chunk, 1, kMost);
  within("max_nodes", s.max_nodes, 1, kMaxTreeNodes);
  within("vocabulary", s.vocabulary, 1, kMost);
  within("draft_head_rows", s.draft_head_rows, s.has_draft() ? 1 : 0, s.vocabulary);
  within("target_costs", static_cast<int>(s.target_costs.size()), 1, kMost);
  within("draft_costs", static_cast<int>(s.draft_costs.size()), s.has_draft() ? 1 : 0, kMost);
}

void check_body(const Header& header, const std::string& path) {
  const auto bytes = header.json.at("body_bytes").get<std::uint64_t>();
  if (header.body.size() != bytes) {
    fail(ErrorKind::file, "{}: {}: expected {} bytes behind the header, got {}", path,
         header.body.size() < bytes ? "cut" : "changed", bytes, header.body.size());
  }
  if (text_sha256(header.body) != header.json.at("body_sha256").get<std::string>()) {
    fail(ErrorKind::file, "{}: changed: its SHA-256 is not the one in its header", path);
  }
}

}  // namespace

void write_recording(const Recording& recording, const std::string& path) {
  RecordingWriter body;
  for (const RecordedAnswer& answer : recording.answers) write_answer(body, answer);
  const Json header = {{"answers", recording.answers.size()},
                       {"body_bytes", body.bytes().size()},
                       {"body_sha256", text_sha256(body.bytes())},
                       {"settings", to_json(recording.settings)},
                       {"run", recording.run}};
  AtomicFile file(path);
  file.write(fmt::format("{}{}\n{}\n", kMagic, kFormat, header.dump(-1, ' ', false, Json::error_handler_t::replace)));
  file.write(body.bytes());
  file.commit();
}

Recording read_recording(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) fail(ErrorKind::file, "{}: cannot be read: {}", path, std::strerror(errno));
  std::ostringstream all;
  all << in.rdbuf();
  return parse_recording(std::move(all).str(), path);
}

Recording parse_recording(std::string_view content, const std::string& path) {
  const Header header = split(content, path);
  Recording recording;
  try {
    check_body(header, path);
    recording.settings = settings_of(header.json.at("settings"));
    check_settings(recording.settings, path);
    recording.run = header.json.at("run");
    RecordingReader body(header.body, path);
    const auto answers = header.json.at("answers").get<std::size_t>();
    for (std::size_t i = 0; i < answers; ++i) {
      body.set_place(fmt::format("answer {} of {}", i + 1, answers));
      recording.answers.push_back(read_answer(body, recording.settings));
    }
    body.require_end();
  } catch (const Json::exception& error) {
    fail(ErrorKind::file, "{}: changed: its header: {}", path, error.what());
  }
  return recording;
}

}  // namespace tandem
