// Everything a configured run needs, brought up in order: pool, backend, models, tokenizer, template, engine.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "draft/registry.h"
#include "src/engine/config.h"
#include "src/engine/constraints.h"
#include "src/engine/corpus_files.h"
#include "src/engine/cost_table.h"
#include "src/engine/engine.h"
#include "src/engine/generation.h"
#include "src/engine/model_files.h"
#include "src/model/transformer.h"
#include "src/text/chat_template.h"

namespace tandem {

// What an engine over a session's models may have otherwise than the session's own.
struct EngineChoice {
  std::string draft_kind;
  std::optional<int> draft_length;  // unset: auto
  int max_nodes;
  double min_probability;
  std::string rule;
  SamplingOptions sampling;
  std::uint64_t seed;
  int context;                         // tokens of its cache, at most the session's
  LanguageModel* target;               // the session's, or what stands in for it; outlives the engine
  LanguageModel* draft;                // the same; null without a draft model
  std::unique_ptr<Verifier> verifier;  // null: the one that `rule` names
  // Makes the policy that runs of the one that was chosen, e.g. one that takes notes; empty: that one itself.
  std::function<std::unique_ptr<LengthPolicy>(std::unique_ptr<LengthPolicy>)> wrap_policy{};
};

class Session {
 public:
  // Replaces the configured drafter, for tests and experiments.
  using DrafterFactory = std::function<std::unique_ptr<Drafter>(const DrafterSetup&)>;

  // Opens models, checks the pair and loads weights. `reference`: F32 arithmetic on the reference backend. Throws
  // Error.
  explicit Session(Config config, bool reference = false, const DrafterFactory& make = make_drafter);

  // Ids of a raw prompt, special tokens parsed, BOS as the model says.
  std::vector<TokenId> encode_raw(std::string_view text) const;
  // Ids of a chat; the configured system prompt comes first unless `messages` brings its own.
  std::vector<TokenId> encode_chat(std::vector<ChatMessage> messages) const;
  // Ids of a chat of exactly these messages, as the template renders them. Throws Error(input) without a template, and
  // as that does.
  std::vector<TokenId> encode_messages(const std::vector<ChatMessage>& messages) const;
  bool chat() const { return template_ != nullptr; }  // prompts are user turns
  // A sentence when a raw text that will become a user's turn already holds the template's markers; empty = none.
  std::string marker_warning(std::string_view text) const;

  StopRules stop_rules(const std::atomic<bool>* cancel = nullptr) const;

  Engine& engine() { return *engine_; }
  const Engine& engine() const { return *engine_; }
  // The choice that gives the session's own engine, for callers to change.
  EngineChoice configured_engine() const { return engine_for(config_); }
  // The choice that gives an engine as `config` says, which may differ from the session's own in drafts (but not in
  // their model and n-grams), rule and sampling.
  EngineChoice engine_for(const Config& config) const;
  // One more engine over the session's models, with caches and a drafter of its own; the session outlives it. Throws
  // Error(config) for a length of auto where the session's own is fixed: nothing was measured then.
  Engine make_engine(EngineChoice choice) const;
  const Tokenizer& tokenizer() const { return *target_.tokenizer; }
  const Config& config() const { return config_; }
  const ModelFile& target() const { return target_; }
  const ModelFile* draft() const { return draft_ ? &*draft_ : nullptr; }
  const Transformer* draft_model() const { return draft_model_.get(); }  // null without one
  const Backend& backend() const { return *backend_; }
  std::uint64_t seed() const { return seed_; }
  int context() const { return engine_->cache().capacity(); }
  KvType target_kv_type() const { return target_kv_type_; }
  bool lossless() const { return engine_->verifier().lossless(); }
  // Whether the text of a seed is another one when other lengths are drafted.
  bool text_depends_on_lengths() const;
  KvType draft_kv_type() const { return draft_kv_type_; }
  double load_seconds() const { return load_seconds_; }
  // T(1) at an empty cache, measured at load.
  double single_row_seconds() const { return single_row_seconds_; }
  // The costs behind draft.length auto; nothing where that decides nothing.
  const std::optional<CostTable>& costs() const { return costs_; }
  // What every answer is held to; nothing without one.
  const std::optional<ConfiguredConstraint>& constraint() const { return constraint_; }
  // The sampler of the target's rows under these settings, for one sequence, with a constraint of its own.
  Sampler make_sampler(const SamplingOptions& sampling, Noise noise) const;
  // What drafts may continue beside the sequence; nothing without draft.corpus, or where no n-gram drafts are made.
  const std::optional<CorpusUse>& corpus() const { return corpus_; }
  // What the user should know of the loading; empty = nothing.
  std::string warning() const;
  // The costs of this session's models, whether or not it had a use for them: saved ones, or measured now.
  CostTable pass_costs() const;
  std::string template_name() const { return template_ ? std::string(template_->name()) : ""; }

 private:
  void open_models();
  void pair_vocabularies();
  void load(const DrafterFactory& make);
  void load_corpus();
  void warm_up_drafts();
  WeightOptions draft_weights(const TokenMask& usable) const;
  DrafterSetup drafter_setup(int context);
  std::unique_ptr<LengthPolicy> make_policy(const EngineChoice& choice) const;

  Config config_;
  bool reference_;
  std::unique_ptr<ThreadPool> pool_;
  std::unique_ptr<Backend> backend_;
  ModelFile target_;
  std::optional<ModelFile> draft_;
  std::unique_ptr<ChatTemplate> template_;
  std::unique_ptr<Transformer> target_model_, draft_model_;
  DrafterFactory make_drafter_;
  DrafterSetup drafter_setup_;  // but for what an EngineChoice says
  TokenMask usable_;            // ids that may be drawn
  int context_ = 0;
  std::optional<CostTable> costs_;
  std::optional<CorpusUse> corpus_;
  std::optional<ConfiguredConstraint> constraint_;
  std::unique_ptr<Engine> engine_;
  std::uint64_t seed_ = 0;
  KvType target_kv_type_ = KvType::f16, draft_kv_type_ = KvType::f16;
  double load_seconds_ = 0;
  double single_row_seconds_ = 0;
};

// A backend and its pool, for commands that run without a config file. `threads` 0 = the machine's default.
std::unique_ptr<ThreadPool> make_pool(int threads);

}  // namespace tandem
