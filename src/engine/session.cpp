#include "src/engine/session.h"

#include <algorithm>
#include <random>

#include "draft/auto_length.h"
#include "draft/head_ranking.h"
#include "draft/retokenize_text.h"
#include "kernels/registry.h"
#include "src/base/error.h"
#include "src/base/stopwatch.h"
#include "src/text/vocabulary_pair.h"

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

// Under these rules the draws of a step depend on how much was drafted, so a fixed seed gives one text only if nothing
// that a clock says decides about it.
bool text_depends_on_lengths(const EngineChoice& choice) {
  return choice.sampling.temperature > 0 && choice.rule != "coupled";
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
    pair_vocabularies();
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
  if (wants_chat) {
    template_ = make_chat_template(target_.template_text, target_.file->name(), template_setting(*target_.tokenizer));
  }
}

void Session::pair_vocabularies() {
  const Vocabulary &target = target_.tokenizer->vocabulary(), &draft = draft_->tokenizer->vocabulary();
  if (!config_.draft.retokenize) {
    require_same_vocabulary(target, draft, target_.file->name(), draft_->file->name());
  } else if (compare_vocabularies(target, draft, 0).match() != VocabularyMatch::different) {
    config_.options.refuse("draft.retokenize", fmt::format("{} has the vocabulary of {} and drafts better without it",
                                                           draft_->file->name(), target_.file->name()));
  }
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
  if (!config_.constraint.kind().empty()) {
    constraint_.emplace(config_, *target_.tokenizer, usable_, stop_rules().end_ids);
  }
  drafter_setup_ = drafter_setup(context);
  if (!config_.draft.length && config_.draft.kind != "none") {
    costs_ = pass_costs();
  }
  engine_ = std::make_unique<Engine>(make_engine(configured_engine()));
  if (draft_model_) warm_up_drafts();
}

// Memory that is new takes several times as long at its first use (0.16 s against 0.03 s for a draft's first 24
// tokens): the target's is used when its single row is measured, and the draft's here, so that no answer pays for it.
void Session::warm_up_drafts() {
  const int tokens = std::min(kMaxTreeNodes, drafter_setup_.context - 1);
  if (tokens < 1) return;
  Context context;
  context.push(std::vector<TokenId>(static_cast<std::size_t>(tokens), 0));
  FixedLength policy(1, 2, 0);
  policy.begin_step({1, 2, tokens});
  engine_->drafter().propose(context, policy);
  engine_->drafter().reset();
}

void Session::load_corpus() {
  if (config_.draft.corpus.empty() || !config_.draft.uses_ngram()) return;
  try {
    corpus_ = tandem::load_corpus(config_.draft.corpus, *target_.tokenizer);
  } catch (const Error& error) {
    config_.options.refuse("draft.corpus", error.what());
  }
}

CostTable Session::pass_costs() const {
  if (costs_) return *costs_;
  return cost_table(target_, *target_model_, draft_ ? &*draft_ : nullptr, draft_model_.get());
}

bool Session::text_depends_on_lengths() const { return tandem::text_depends_on_lengths(configured_engine()); }

EngineChoice Session::engine_for(const Config& config) const {
  return {.draft_kind = config.draft.kind,
          .draft_length = config.draft.length,
          .max_nodes = config.draft.max_nodes,
          .min_probability = config.draft.min_probability,
          .rule = config.verify.rule,
          .sampling = config.sampling,
          .seed = seed_,
          .context = context_,
          .target = target_model_.get(),
          .draft = draft_model_.get(),
          .verifier = nullptr};
}

Sampler Session::make_sampler(const SamplingOptions& sampling, Noise noise) const {
  return Sampler(sampling, noise, usable_, constraint_ ? constraint_->make() : nullptr);
}

Engine Session::make_engine(EngineChoice choice) const {
  const Noise noise{choice.seed, 0};
  Sampler sampler = make_sampler(choice.sampling, noise);
  std::unique_ptr<Verifier> verifier = choice.verifier ? std::move(choice.verifier) : make_verifier(choice.rule);
  DrafterSetup setup = drafter_setup_;
  setup.kind = choice.draft_kind;
  setup.sampling = choice.sampling;
  setup.noise = noise;
  setup.draw = verifier->draft_draw();
  setup.model = choice.draft;
  setup.constraint = sampler.shared_constraint();
  // Tokens of the draft are as many as the target's only where they are the same.
  if (setup.draft_words == nullptr) setup.context = std::min(setup.context, choice.context);
  std::unique_ptr<LengthPolicy> policy = make_policy(choice);
  return Engine({
      .target = choice.target,
      .cache = choice.target->make_cache(choice.context, target_kv_type_),
      .drafter = make_drafter_(setup),
      .policy = choice.wrap_policy ? choice.wrap_policy(std::move(policy)) : std::move(policy),
      .verifier = std::move(verifier),
      .sampler = std::move(sampler),
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
  const std::vector<TokenId> ends =
      config_.draft.retokenize ? end_ids(draft_->tokenizer->vocabulary()) : stop_rules().end_ids;
  options.head_tokens = kept_head_tokens(*config_.draft.head_rows, ranking, ends, usable, vocabulary);
  return options;
}

DrafterSetup Session::drafter_setup(int context) {
  DrafterSetup setup;
  setup.min_match = config_.draft.ngram_min_match;
  setup.max_match = config_.draft.ngram_max_match;
  if (corpus_) setup.corpus = corpus_->index;
  setup.context = context;
  const bool retokenize = draft_ && config_.draft.retokenize;
  setup.mask = usable_tokens(target_, draft_ && !retokenize ? &*draft_ : nullptr);
  if (draft_) {
    const int wanted = checked_context(config_.draft.context, context, config_, "draft.context", *draft_);
    setup.context = retokenize ? wanted : std::min(context, wanted);
    TokenMask drawable = setup.mask;
    if (retokenize) {
      setup.target_words = target_.tokenizer.get();
      setup.draft_words = draft_->tokenizer.get();
      drawable = drafting_mask(*draft_->tokenizer);
    }
    draft_model_ = std::make_unique<Transformer>(draft_->spec, *draft_->file, *backend_, config_.runtime.prefill_chunk,
                                                 setup.context, draft_weights(drawable));
    setup.kv_type = draft_kv_type_;
  }
  return setup;
}

std::unique_ptr<LengthPolicy> Session::make_policy(const EngineChoice& choice) const {
  if (choice.draft_kind == "none") return std::make_unique<FixedLength>(0, 1, 0);
  if (choice.draft_length) {
    const DraftShape shape = choice.max_nodes > *choice.draft_length + 1 ? DraftShape::tree : DraftShape::chain;
    return std::make_unique<FixedLength>(*choice.draft_length, choice.max_nodes, choice.min_probability, shape);
  }
  if (!costs_) fail(ErrorKind::config, "draft.length: auto needs costs, and this session has measured none");
  // What stands in for the models says nothing of their times.
  const bool own_models = choice.target == target_model_.get();
  const bool refresh = own_models && !(config_.seed && tandem::text_depends_on_lengths(choice));
  return std::make_unique<AutoLength>(costs_->model(), choice.max_nodes, choice.min_probability, refresh);
}

std::vector<TokenId> Session::encode_raw(std::string_view text) const {
  return target_.tokenizer->encode_prompt(text, Specials::parse);
}

std::vector<TokenId> Session::encode_chat(std::vector<ChatMessage> messages) const {
  const bool brings_system = !messages.empty() && messages.front().role == "system";
  if (!config_.prompt.system.empty() && !brings_system) {
    messages.insert(messages.begin(), {"system", config_.prompt.system});
  }
  return encode_messages(messages);
}

std::vector<TokenId> Session::encode_messages(const std::vector<ChatMessage>& messages) const {
  if (!template_) fail(ErrorKind::input, "{}: a chat needs prompt.chat true", target_.file->name());
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

std::string Session::warning() const {
  std::string warning = corpus_ ? corpus_->warning() : "";
  if (!template_) return warning;
  const std::vector<std::string> unknown = unknown_markers(*template_, *target_.tokenizer);
  if (unknown.empty()) return warning;
  if (!warning.empty()) warning += "; ";
  return warning + fmt::format(
                       "{}: its chat template writes {}, no single token of its vocabulary, which the model "
                       "will read as plain text",
                       target_.file->name(), fmt::join(unknown, " and "));
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
