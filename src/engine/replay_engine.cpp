#include "src/engine/replay_engine.h"

#include <algorithm>

#include "draft/auto_length.h"
#include "draft/registry.h"
#include "src/base/error.h"

namespace tandem {
namespace {

// Greedy: the rows say what was drawn. At temperature 0 they are the models' own, which bias and penalties adjust.
SamplingOptions replayed_sampling(const RecordingSettings& settings, const ReplayVocabulary& vocabulary) {
  SamplingOptions sampling = settings.sampling;
  if (sampling.temperature > 0) sampling = {.logit_bias = {}};
  sampling.temperature = 0;
  std::vector<std::pair<TokenId, double>> bias;
  for (const auto& [id, value] : sampling.logit_bias) {
    if (const auto number = vocabulary.number(id)) bias.emplace_back(*number, value);
  }
  sampling.logit_bias = std::move(bias);
  return sampling;
}

std::unique_ptr<LengthPolicy> policy_of(const RecordingSettings& settings, const ReplaySetting& setting) {
  if (setting.length) {
    return std::make_unique<FixedLength>(*setting.length, *setting.length + 1, setting.min_probability);
  }
  CostModel costs;
  costs.target = PassCosts(settings.target_costs);
  if (!settings.draft_costs.empty()) costs.draft = PassCosts(settings.draft_costs);
  return std::make_unique<AutoLength>(costs, settings.max_nodes, setting.min_probability, settings.refresh_costs);
}

}  // namespace

ReplayEngine::ReplayEngine(const RecordedAnswer& answer, const RecordingSettings& settings,
                           const ReplayVocabulary& vocabulary, const ReplayCosts& costs, ReplayRows& rows,
                           const ReplaySetting& setting)
    : answer_(answer),
      settings_(settings),
      vocabulary_(vocabulary),
      costs_(costs),
      rows_(rows),
      target_(setup(false)),
      draft_(setup(true)),
      engine_(make_engine(setting)) {}

ReplayModel::Setup ReplayEngine::setup(bool draft) {
  ReplayModel::Setup setup{.text = answer_.tokens,
                           .prompt = answer_.prompt,
                           .branches = {},
                           .vocabulary = vocabulary_.row_size(),
                           .context = settings_.context,
                           .max_rows = std::max(settings_.prefill_chunk, kMaxTreeNodes),
                           .write = {},
                           .passed = {}};
  if (draft) {
    setup.branches = answer_.branches;
    setup.context = std::max(settings_.draft_context, 1);
    setup.write = [this](const ReplayPlace& place, std::span<float> out) { rows_.write_draft(place, out); };
    setup.passed = [this](int rows) { clock_.draft += costs_.draft.seconds(rows); };
  } else {
    setup.write = [this](const ReplayPlace& place, std::span<float> out) { rows_.write_target(place, out); };
    setup.passed = [this](int rows) { clock_.target += costs_.target.seconds(rows); };
  }
  return setup;
}

Engine ReplayEngine::make_engine(const ReplaySetting& setting) {
  const SamplingOptions sampling = replayed_sampling(settings_, vocabulary_);
  DrafterSetup setup;
  setup.kind = setting.kind;
  setup.sampling = sampling;
  setup.model = &draft_;
  setup.context = settings_.has_draft() ? settings_.draft_context : settings_.context;
  setup.kv_type = KvType::f32;
  setup.mask = vocabulary_.mask();
  setup.min_match = settings_.ngram_min_match;
  setup.max_match = settings_.ngram_max_match;
  return Engine({.target = &target_,
                 .cache = target_.make_cache(settings_.context, KvType::f32),
                 .drafter = make_drafter(setup),
                 .policy = std::make_unique<ReplayPolicy>(policy_of(settings_, setting), clock_),
                 .verifier = make_verifier("rejection"),
                 .sampler = Sampler(sampling, {}, vocabulary_.mask()),
                 .prefill_chunk = settings_.prefill_chunk});
}

// As far as it was recorded.
void ReplayEngine::require_text(std::span<const TokenId> committed) const {
  const auto first = static_cast<std::size_t>(engine_.context().size()) - committed.size();
  for (std::size_t i = 0; i < committed.size() && first + i < answer_.tokens.size(); ++i) {
    if (committed[i] == answer_.tokens[first + i]) continue;
    fail(ErrorKind::file, "recording: answer {}: its rows do not give token {} of its text", answer_.id,
         first + i - static_cast<std::size_t>(answer_.prompt) + 1);
  }
}

ReplayedAnswer ReplayEngine::run() {
  engine_.start(std::span(answer_.tokens).first(static_cast<std::size_t>(answer_.prompt)));
  while (engine_.prefill_chunk()) continue;
  const TokenId first = engine_.first_token();
  require_text({&first, 1});
  clock_ = {};  // decoding begins here
  ReplayedAnswer replayed;
  for (int done = 1; done < answer_.generated;) {
    rows_.begin_step(engine_.context().size());
    draft_.begin_step(engine_.context().size());
    const std::span<const TokenId> committed = engine_.step(answer_.max_tokens - done);
    require_text(committed);
    done += static_cast<int>(committed.size());
    replayed.sample_seconds += costs_.sample * static_cast<double>(committed.size());
    replayed.other_seconds += costs_.other;
    if (done > answer_.generated) engine_.cut(done - answer_.generated);
  }
  replayed.metrics = engine_.metrics();
  replayed.tokens = answer_.generated - 1;
  replayed.plain_seconds = replayed.tokens * costs_.plain_step();
  replayed.draft_seconds = clock_.draft;
  replayed.verify_seconds = clock_.target;
  return replayed;
}

}  // namespace tandem
