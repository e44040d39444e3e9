#include "src/engine/replay.h"

#include <algorithm>
#include <array>

#include "draft/head_ranking.h"
#include "src/base/error.h"
#include "src/engine/replay_engine.h"

namespace tandem {
namespace {

bool uses_model(const std::string& kind) { return kind == "model" || kind == "hybrid"; }

Recording checked(Recording recording) {
  if (recording.answers.empty()) fail(ErrorKind::file, "the recording holds no answers");
  return recording;
}

template <typename T>
std::vector<T> values_or(const std::vector<T>& values, T recorded) {
  return values.empty() ? std::vector<T>{recorded} : values;
}

}  // namespace

void ReplayedAnswer::add(const ReplayedAnswer& other) {
  metrics.add(other.metrics);
  plain_seconds += other.plain_seconds;
  draft_seconds += other.draft_seconds;
  verify_seconds += other.verify_seconds;
  sample_seconds += other.sample_seconds;
  other_seconds += other.other_seconds;
  tokens += other.tokens;
}

double Prediction::worst_ratio() const { return std::ranges::min(answers, {}, &ReplayedAnswer::ratio).ratio(); }

std::optional<double> Prediction::acceptance() const {
  const DraftCounts& drafts = total.metrics.total;
  if (drafts.tested == 0) return std::nullopt;
  return static_cast<double>(drafts.accepted) / static_cast<double>(drafts.tested);
}

Replayer::Replayer(Recording recording, std::vector<TokenId> ranking, int repeats)
    : recording_(checked(std::move(recording))),
      vocabulary_(recording_),
      ranking_(std::move(ranking)),
      repeats_(recording_.settings.sampling.temperature > 0 ? repeats : 1) {
  for (const RecordedAnswer& answer : recording_.answers) {
    target_ratios_.add(answer.times.target_passes);
    draft_ratios_.add(answer.times.draft_passes);
  }
}

double Replayer::plain_tokens_per_second() const {
  double tokens = 0, seconds = 0;
  for (const RecordedAnswer& answer : recording_.answers) {
    tokens += answer.generated - 1;
    seconds += (answer.generated - 1) * replay_costs(answer, target_ratios_, draft_ratios_, 1).plain_step();
  }
  return tokens / seconds;
}

void Replayer::check(const ReplaySetting& setting) const {
  const RecordingSettings& recorded = recording_.settings;
  constexpr std::array<std::string_view, 4> kKinds{"none", "ngram", "model", "hybrid"};
  constexpr std::array<std::string_view, 3> kRules{"rejection", "block", "coupled"};
  if (std::ranges::find(kKinds, setting.kind) == kKinds.end()) {
    fail(ErrorKind::usage, "kind {}: expected none, ngram, model or hybrid", setting.kind);
  }
  if (uses_model(setting.kind) && !recorded.has_draft()) {
    fail(ErrorKind::usage, "kind {}: the recording has no draft model; record with draft.kind hybrid", setting.kind);
  }
  const bool hot = recorded.sampling.temperature > 0;
  if (hot && std::ranges::find(kRules, setting.rule) == kRules.end()) {
    fail(ErrorKind::usage, "rule {}: expected rejection, block or coupled; others change the law of the text",
         setting.rule);
  }
  const int most = std::max(recorded.longest, recorded.max_nodes - 1);
  if (setting.length && (*setting.length < 0 || *setting.length > most)) {
    fail(ErrorKind::usage, "length {}: expected auto or 0..{}, as far as was recorded (--longest)", *setting.length,
         most);
  }
  if (setting.head_rows && (*setting.head_rows < 1 || *setting.head_rows > recorded.draft_head_rows)) {
    fail(ErrorKind::usage, "head rows {}: expected 1..{}, those of the recorded draft", *setting.head_rows,
         recorded.draft_head_rows);
  }
}

// The same with what does not matter as it was recorded.
ReplaySetting Replayer::relevant(ReplaySetting setting) const {
  const bool drafts = setting.kind != "none" && setting.length != 0;
  if (!drafts) setting = {.kind = "none", .length = 0, .min_probability = 0, .rule = {}, .head_rows = {}};
  const bool rules = drafts && recording_.settings.sampling.temperature > 0 && uses_model(setting.kind);
  if (!rules) setting.rule = recording_.settings.rule;
  if (!uses_model(setting.kind) || setting.head_rows == recording_.settings.draft_head_rows) setting.head_rows.reset();
  return setting;
}

std::vector<ReplaySetting> Replayer::combinations(const ReplayGrid& grid) const {
  const RecordingSettings& recorded = recording_.settings;
  std::vector<ReplaySetting> settings;
  for (const std::string& kind : values_or(grid.kinds, recorded.kind)) {
    for (const std::optional<int>& head_rows : values_or(grid.head_rows, {})) {
      for (const std::string& rule : values_or(grid.rules, recorded.rule)) {
        for (const double least : values_or(grid.min_probabilities, recorded.min_probability)) {
          for (const std::optional<int>& length : values_or(grid.lengths, {})) {
            const ReplaySetting wanted{kind, length, least, rule, head_rows};
            check(wanted);
            const ReplaySetting setting = relevant(wanted);
            if (std::ranges::find(settings, setting) == settings.end()) settings.push_back(setting);
          }
        }
      }
    }
  }
  return settings;
}

std::optional<ReplayRows::Head> Replayer::head(const ReplaySetting& setting) const {
  if (!setting.head_rows) return std::nullopt;
  const RecordingSettings& recorded = recording_.settings;
  std::vector<bool> usable(static_cast<std::size_t>(recorded.vocabulary));
  for (const TokenRun& run : recorded.usable) {
    for (TokenId id = run.begin; id < std::min(run.end, recorded.vocabulary); ++id) usable[id] = true;
  }
  const std::vector<TokenId> ids = kept_head_tokens(*setting.head_rows, ranking_, recorded.end_ids,
                                                    TokenMask(std::move(usable)), recorded.vocabulary);
  if (ids.empty()) return std::nullopt;  // all of them
  ReplayRows::Head head{std::vector<bool>(static_cast<std::size_t>(vocabulary_.row_size()))};
  for (const TokenId id : ids) {
    if (const auto number = vocabulary_.number(id)) head.kept[static_cast<std::size_t>(*number)] = true;
  }
  return head;
}

// A draft step is bound by the bytes that it reads.
double Replayer::draft_share(const ReplaySetting& setting) const {
  if (!setting.head_rows) return 1;
  const RecordingSettings& s = recording_.settings;
  return 1 - (s.draft_head_rows - *setting.head_rows) * s.draft_bytes_a_head_row / s.draft_bytes;
}

Prediction Replayer::predict(const ReplaySetting& setting) const {
  Prediction prediction{setting, {}, {}};
  const std::optional<ReplayRows::Head> trimmed = head(setting);
  for (const RecordedAnswer& answer : recording_.answers) {
    ReplayedAnswer sum;
    for (int i = 0; i < repeats_; ++i) sum.add(replay(answer, setting, trimmed ? &*trimmed : nullptr, i));
    prediction.total.add(sum);
    prediction.answers.push_back(sum);
  }
  return prediction;
}

ReplayedAnswer Replayer::replay(const RecordedAnswer& answer, const ReplaySetting& setting,
                                const ReplayRows::Head* head, int repeat) const {
  const ReplayCosts costs = replay_costs(answer, target_ratios_, draft_ratios_, draft_share(setting));
  const Noise draws{recording_.settings.noise.seed, static_cast<std::uint32_t>(repeat)};
  ReplayRows rows(answer, recording_.settings, vocabulary_, setting.rule, head, draws);
  ReplayEngine engine(answer, recording_.settings, vocabulary_, costs, rows, setting);
  return engine.run();
}

}  // namespace tandem
