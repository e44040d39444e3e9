#include "src/engine/recording_run.h"

#include <algorithm>
#include <array>

#include "src/base/error.h"
#include "src/base/stopwatch.h"
#include "src/engine/recording_draft.h"
#include "src/engine/report.h"

namespace tandem {
namespace {

constexpr std::array kTimedRows{2, 3, 4, 5, 6, 7, 8, 9, 12, 16};
constexpr int kTimedEvery = 32;  // tokens
constexpr int kTimedFirst = 8;

double stages(const StageSeconds& s) { return s.prefill + s.draft + s.verify + s.sample + s.rollback; }

EngineChoice plain(const Session& session) {
  EngineChoice choice = session.configured_engine();
  choice.draft_kind = "none";
  return choice;
}

}  // namespace

Recorder::Recorder(const Session& session, int longest)
    : session_(session), longest_(longest), engine_(session.make_engine(plain(session))), sampler_(engine_.sampler()) {
  const Config& config = session.config();
  if (config.draft.kind == "none" || config.draft.kind == "recycle") {
    config.options.refuse(
        "draft.kind", fmt::format("expected a kind that replays (ngram, model, hybrid), got {}", config.draft.kind));
  }
  if (!config.draft.corpus.empty()) config.options.refuse("draft.corpus", "drafts from a corpus do not replay");
  if (session.constraint()) {
    config.options.refuse(fmt::format("constraint.{}", config.constraint.kind()),
                          "answers under a constraint do not replay");
  }
  if (config.draft.retokenize) config.options.refuse("draft.retokenize", "drafts through text do not replay");
  if (!session.costs()) config.options.refuse("draft.length", "a recording needs auto, whose costs belong to it");
  const EngineChoice configured = session.configured_engine();
  if (configured.draft == nullptr) return;
  draft_ = std::make_unique<DraftRecorder>(
      *configured.draft, session.draft_kv_type(),
      Sampler(configured.sampling, {configured.seed, 0}, usable_tokens(session.target(), session.draft())), longest);
}

Recorder::~Recorder() = default;

Recording Recorder::empty() const {
  const Config& config = session_.config();
  Recording recording;
  RecordingSettings& s = recording.settings;
  s.sampling = config.sampling;
  s.noise = {session_.seed(), 0};
  s.rule = config.verify.rule;
  s.kind = config.draft.kind;
  s.longest = longest_;
  s.context = session_.context();
  s.prefill_chunk = config.runtime.prefill_chunk;
  s.max_nodes = config.draft.max_nodes;
  s.min_probability = config.draft.min_probability;
  s.ngram_min_match = config.draft.ngram_min_match;
  s.ngram_max_match = config.draft.ngram_max_match;
  s.refresh_costs = !(config.seed && session_.text_depends_on_lengths());
  s.vocabulary = session_.target().spec.vocab;
  s.end_ids = session_.stop_rules().end_ids;
  const TokenMask usable = usable_tokens(session_.target(), session_.draft());
  s.usable.assign(usable.runs().begin(), usable.runs().end());
  s.target_costs = session_.costs()->target;
  s.draft_costs = session_.costs()->draft;
  if (const Transformer* draft = session_.draft_model()) {
    s.draft_context = draft->max_positions();
    s.vocabulary = std::max(s.vocabulary, draft->spec().vocab);
    s.draft_head_rows = draft->weights().head().rows;
    s.draft_bytes = static_cast<double>(draft->weights().bytes_per_pass());
    s.draft_bytes_a_head_row = static_cast<double>(draft->weights().head().bytes) / s.draft_head_rows;
  }
  recording.run = settings_json(session_);
  return recording;
}

std::optional<RecordedAnswer> Recorder::answer(const std::string& id, const std::string& task,
                                               std::span<const TokenId> prompt, const StopRules& rules) {
  engine_.reset();
  RecordedAnswer answer{.id = id,
                        .task = task,
                        .stop_reason = {},
                        .tokens = {prompt.begin(), prompt.end()},
                        .prompt = static_cast<int>(prompt.size()),
                        .generated = 0,
                        .max_tokens = rules.max_tokens,
                        .target = {},
                        .draft = {},
                        .branches = {},
                        .times = {}};
  before_.clear();
  before_.push(prompt);
  Generation generation(engine_, session_.tokenizer(), prompt, rules);
  double other = 0;
  for (bool more = true; more;) {
    const StageSeconds seconds = engine_.metrics().seconds;
    const int size = engine_.context().size();
    const double start = now_seconds();
    more = generation.advance();
    if (engine_.context().size() == size) break;  // cancelled, or out of time
    const StageSeconds& now = engine_.metrics().seconds;
    if (size == answer.prompt) {
      if (draft_) draft_->begin(prompt, answer);
    } else {
      answer.times.target_steps.push_back(static_cast<float>(now.verify - seconds.verify));
      other += now_seconds() - start - (stages(now) - stages(seconds));
    }
    note(answer);
  }
  const GenerationResult& result = generation.result();
  if (result.stop_reason == StopReason::cancel) return std::nullopt;
  answer.stop_reason = name_of(result.stop_reason);
  answer.generated = static_cast<int>(result.ids.size());
  if (answer.times.target_steps.empty()) {
    fail(ErrorKind::input, "the answer ends with its first token, so that there is nothing to replay");
  }
  const auto steps = static_cast<double>(answer.times.target_steps.size());
  answer.times.sample_a_step = engine_.metrics().seconds.sample / (steps + 1);
  answer.times.other_a_step = other / steps;
  if (result.stop_reason == StopReason::stop) go_beyond(answer);
  return answer;
}

// Records the token that was committed last and the rows that it came from.
void Recorder::note(RecordedAnswer& answer) {
  const TokenId token = engine_.context().tokens().back();
  const std::span<const float> logits = engine_.last_logits().row(0);
  if (!sampler_.greedy()) sampler_.distribution(logits, before_, distribution_);
  std::vector<TokenId> needed{token};
  for (const auto& [biased, bias] : sampler_.options().logit_bias) needed.push_back(biased);
  answer.target.push_back(recorded_row(logits, distribution_, sampler_.greedy(), sampler_.mask(), needed));
  if (draft_ && before_.size() > answer.prompt) draft_->note(before_, token, answer);
  before_.push(token);
  answer.tokens.push_back(token);
  const int generated = before_.size() - answer.prompt;
  if (generated % kTimedEvery == kTimedFirst) time_passes(answer);
}

// A drafting run does not know where the answer ends: its last step may try tokens beyond.
void Recorder::go_beyond(RecordedAnswer& answer) {
  const int beyond = std::max(longest_, session_.config().draft.max_nodes - 1);
  for (int i = 0; i < beyond && engine_.room() > 0; ++i) {
    engine_.step(1);
    note(answer);
  }
}

void Recorder::time_passes(RecordedAnswer& answer) {
  for (const int rows : kTimedRows) {
    if (engine_.room() < rows) break;
    const double single = engine_.measure_pass(1);
    answer.times.target_passes.push_back(
        {rows, static_cast<float>(engine_.measure_pass(rows)), static_cast<float>(single)});
  }
  if (draft_) draft_->time_passes(answer);
}

}  // namespace tandem
