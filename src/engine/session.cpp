#include "src/engine/session.h"

#include <algorithm>
#include <random>

#include "draft/auto_length.h"
#include "draft/head_ranking.h"
#include "kernels/registry.h"
#include "src/base/error.h"
#include "src/base/stopwatch.h"

namespace tandem {
namespace {

constexpr int kDefaultContext = 4096;

int checked_context(const std::optional<int>& wanted, int fallback, const Config& config, const char* key,
                    const ModelFile& model) {
  const int limit = model.spec.context;
  if (wanted && *wanted > limit) {
    config.options.refuse(key,
                          fmt::format("expected 16..{}, the limit of {}, got {}", limit, model.file->name(), *wanted));
  }
  return wanted.value_or(std::min(limit, fallback));
}

std::uint64_t random_seed() {
  std::random_device device;
  return (std::uint64_t{device()} << 32) | device();
}

}  // namespace

std::unique_ptr<ThreadPool> make_pool(int threads) {
  return std::make_unique<ThreadPool>(threads > 0 ? threads : default_threads());
}

Session::Session(Config config, bool reference, const DrafterFactory& make)
    : config_(std::move(config)), reference_(reference) {
  const ScopedSeconds timer(load_seconds_);
  seed_ = config_.seed ? *config_.seed : random_seed();
  pool_ = make_pool(config_.runtime.threads);
  backend_ = make_backend(reference ? "reference" : config_.runtime.backend, *pool_);
  open_models();
  load(make);
  // Besides, it warms the target up: what was loaded last is the draft.
  single_row_seconds_ = engine_->measure_single_row();
}

void Session::open_models() {
  target_ = open_model(config_.target.model);
  if (config_.draft.uses_model()) {
    draft_ = open_model(config_.draft.model);
    require_same_vocabulary(target_.tokenizer->vocabulary(), draft_->tokenizer->vocabulary(), target_.file->name(),
                            draft_->file->name());
  }
  const int vocabulary = target_.tokenizer->vocabulary().size();
  for (const TokenId id : config_.stop.token_ids) {
    if (id >= vocabulary) {
      config_.options.refuse("stop.token_ids", fmt::format("expected ids in 0..{}, the vocabulary of {}, got {}",
                                                           vocabulary - 1, target_.file->name(), id));
    }
  }
  for (const auto& [id, bias] : config_.sampling.logit_bias) {
    if (id >= vocabulary) {
      config_.options.refuse("sampling.logit_bias", fmt::format("expected ids in 0..{}, the vocabulary of {}, got {}",
                                                                vocabulary - 1, target_.file->name(), id));
    }
  }
  const bool wants_chat = config_.prompt.chat.value_or(!target_.template_text.empty());
  if (wants_chat && target_.template_text.empty()) {
    config_.options.refuse("prompt.chat", fmt::format("{} has no chat template; use false", target_.file->name()));
  }
  if (wants_chat) template_ = make_chat_template(target_.template_text, target_.file->name());
}

void Session::load(const DrafterFactory& make) {
  const int context = checked_context(config_.target.context, kDefaultContext, config_, "target.context", target_);
  target_model_ =
      std::make_unique<Transformer>(target_.spec, *target_.file, *backend_, config_.runtime.prefill_chunk, context);
  const KvType kv_type = reference_ ? backend_->preferred_kv_type() : config_.runtime.kv_cache;
  target_kv_type_ = kv_type;
  draft_kv_type_ = reference_ ? kv_type : config_.draft.kv_cache.value_or(kv_type);
  context_ = context;
  usable_ = usable_tokens(target_);
  make_drafter_ = make;
  load_corpus();
  drafter_setup_ = drafter_setup(context);
  if (!config_.draft.length && config_.draft.kind != "none") {
    costs_ = cost_table(target_, *target_model_, draft_ ? &*draft_ : nullptr, draft_model_.get());
  }
  engine_ = std::make_unique<Engine>(make_engine(configured_engine()));
}

void Session::load_corpus() {
  if (config_.draft.corpus.empty() || !config_.draft.uses_ngram()) return;
  try {
    corpus_ = tandem::load_corpus(config_.draft.corpus, *target_.tokenizer);
  } catch (const Error& error) {
    config_.options.refuse("draft.corpus", error.what());
  }
}

EngineChoice Session::configured_engine() const {
  return {.draft_kind = config_.draft.kind,
          .sampling = config_.sampling,
          .seed = seed_,
          .context = context_,
          .target = target_model_.get(),
          .draft = draft_model_.get(),
          .verifier = nullptr};
}

Engine Session::make_engine(EngineChoice choice) const {
  const Noise noise{choice.seed, 0};
  std::unique_ptr<Verifier> verifier =
      choice.verifier ? std::move(choice.verifier) : make_verifier(config_.verify.rule);
  DrafterSetup setup = drafter_setup_;
  setup.kind = choice.draft_kind;
  setup.sampling = choice.sampling;
  setup.noise = noise;
  setup.draw = verifier->draft_draw();
  setup.model = choice.draft;
  setup.context = std::min(setup.context, choice.context);
  return Engine({
      .target = choice.target,
      .cache = choice.target->make_cache(choice.context, target_kv_type_),
      .drafter = make_drafter_(setup),
      .policy = make_policy(choice),
      .verifier = std::move(verifier),
      .sampler = Sampler(choice.sampling, noise, usable_),
      .prefill_chunk = config_.runtime.prefill_chunk,
      .logprobs = config_.logprobs,
  });
}

// How the draft's weights differ from its file.
WeightOptions Session::draft_weights(const TokenMask& usable) const {
  WeightOptions options;
  if (config_.draft.quantize == "q4_0") options.quantize = Format::q4_0;
  if (config_.draft.quantize == "q8_0") options.quantize = Format::q8_0;
  if (!config_.draft.head_rows) return options;
  const int vocabulary = draft_->spec.vocab;
  std::vector<TokenId> ranking;
  if (!config_.draft.head_ranking.empty()) {
    try {
      ranking = read_head_ranking(config_.draft.head_ranking, vocabulary);
    } catch (const Error& error) {
      config_.options.refuse("draft.head_ranking", error.what());
    }
  }
  const std::vector<TokenId> ends = stop_rules().end_ids;
  options.head_tokens = kept_head_tokens(*config_.draft.head_rows, ranking, ends, usable, vocabulary);
  return options;
}

DrafterSetup Session::drafter_setup(int context) {
  DrafterSetup setup;
  setup.min_match = config_.draft.ngram_min_match;
  setup.max_match = config_.draft.ngram_max_match;
  if (corpus_) setup.corpus = corpus_->index;
  setup.context = context;
  setup.mask = usable_tokens(target_, draft_ ? &*draft_ : nullptr);
  if (draft_) {
    setup.context =
        std::min(context, checked_context(config_.draft.context, context, config_, "draft.context", *draft_));
    draft_model_ = std::make_unique<Transformer>(draft_->spec, *draft_->file, *backend_, config_.runtime.prefill_chunk,
                                                 setup.context, draft_weights(setup.mask));
    setup.kv_type = draft_kv_type_;
  }
  return setup;
}

// Under these rules the draws of a step depend on how much was drafted, so a fixed seed gives one text only if nothing
// that a clock says decides about it.
bool Session::text_depends_on_lengths() const {
  return config_.sampling.temperature > 0 && config_.verify.rule != "coupled";
}

std::unique_ptr<LengthPolicy> Session::make_policy(const EngineChoice& choice) const {
  const DraftConfig& draft = config_.draft;
  if (draft.length) {
    const DraftShape shape = draft.max_nodes > *draft.length + 1 ? DraftShape::tree : DraftShape::chain;
    return std::make_unique<FixedLength>(*draft.length, draft.max_nodes, draft.min_probability, shape);
  }
  if (!costs_ || choice.draft_kind == "none") return std::make_unique<FixedLength>(0, 1, 0);
  // What stands in for the models says nothing of their times.
  const bool own_models = choice.target == target_model_.get();
  const bool refresh = own_models && !(config_.seed && text_depends_on_lengths());
  return std::make_unique<AutoLength>(costs_->model(), draft.max_nodes, draft.min_probability, refresh);
}

std::vector<TokenId> Session::encode_raw(std::string_view text) const {
  return target_.tokenizer->encode_prompt(text, Specials::parse);
}

std::vector<TokenId> Session::encode_chat(std::vector<ChatMessage> messages) const {
  if (!template_) fail(ErrorKind::input, "{}: a chat needs prompt.chat true", target_.file->name());
  const bool brings_system = !messages.empty() && messages.front().role == "system";
  if (!config_.prompt.system.empty() && !brings_system) {
    messages.insert(messages.begin(), {"system", config_.prompt.system});
  }
  return tandem::encode_chat(*target_.tokenizer, template_->render(messages));
}

std::string Session::marker_warning(std::string_view text) const {
  if (!template_) return {};
  for (const std::string& marker : template_->markers()) {
    if (text.find(marker) != std::string_view::npos) {
      return fmt::format(
          "the prompt already holds {}, which stays plain text inside the user's turn; for a prompt that is "
          "rendered already use --set prompt.chat=false",
          marker);
    }
  }
  return {};
}

StopRules Session::stop_rules(const std::atomic<bool>* cancel) const {
  StopRules rules;
  rules.end_ids = end_ids(target_.tokenizer->vocabulary());
  rules.end_ids.insert(rules.end_ids.end(), config_.stop.token_ids.begin(), config_.stop.token_ids.end());
  rules.strings = config_.stop.strings;
  rules.max_tokens = config_.stop.max_tokens;
  rules.time_limit_seconds = config_.stop.time_limit_seconds;
  rules.cancel = cancel;
  return rules;
}

}  // namespace tandem
