// Engines on tiny models, and what every step of them must keep true.
#pragma once
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "draft/auto_length.h"
#include "draft/registry.h"
#include "draft/retokenize.h"
#include "src/engine/engine.h"
#include "src/sample/grammar/gbnf.h"
#include "src/sample/grammar/grammar_constraint.h"
#include "tests/engine/random_tree_drafter.h"
#include "tests/engine/scripted_drafters.h"
#include "tests/model/tiny_model.h"

namespace tandem::test {

inline constexpr TokenId kWords = 105;  // ids of the tiny vocabulary that are no control tokens

inline std::vector<std::string> backends() { return {"reference", "cpu"}; }

inline SamplingOptions greedy_sampling() { return {.temperature = 0, .top_k = 0, .top_p = 1}; }

inline constexpr int kAuto = -1;

struct RigOptions {
  int length = 4;  // kAuto: by expected tokens a second, with costs as real models have
  int max_nodes = kMaxTreeNodes;
  DraftShape shape = DraftShape::chain;  // of a fixed length
  int capacity = 96;
  int prefill_chunk = 7;
  std::uint64_t seed = 1;
  SamplingOptions sampling = greedy_sampling();
  TokenMask mask{};
  std::optional<KvType> draft_kv{};  // unset: as the target's
  int logprobs = 0;
  std::string rule = "rejection";
  std::shared_ptr<Constraint> constraint{};  // of one engine at a time and its drafter
};

// The constraint of a grammar on the tiny vocabulary.
inline std::shared_ptr<Constraint> tiny_constraint(const Grammar& grammar, const std::vector<TokenId>& end_ids = {}) {
  static const auto words = make_tokenizer(tiny_vocabulary(), "tiny");  // outlives every constraint
  const TokenMask usable(std::vector<bool>(static_cast<std::size_t>(words->vocabulary().size()), true));
  return std::make_shared<GrammarConstraint>(std::make_shared<TokenMasks>(
      grammar, "constraint.grammar", std::make_shared<VocabularyTrie>(*words, usable), usable, end_ids));
}
inline std::shared_ptr<Constraint> tiny_constraint(const std::string& gbnf, const std::vector<TokenId>& end_ids = {}) {
  return tiny_constraint(parse_gbnf(gbnf, "test.gbnf"), end_ids);
}

// A target and a draft that often agrees with it, on one backend.
class Rig {
 public:
  // `kv`: type of both caches; unset: the backend's own. `architecture`: of target and draft.
  explicit Rig(const std::string& backend = "reference", int threads = 1, std::optional<KvType> kv = {},
               const std::string& architecture = "qwen2")
      : target_(options(backend, 0, kv, architecture), backend, threads),
        draft_(options(backend, 0.3, kv, architecture), backend, threads),
        cheap_draft_(options(backend, 0.3, kv, architecture), backend, threads, 128, cheap_weights()),
        foreign_draft_(foreign_options(backend, kv), backend, threads),
        kv_type_(kv.value_or(target_.backend->preferred_kv_type())) {}

  // Tests share models that differ in nothing. They are never destroyed: at exit the emulation of a device would be
  // gone before the memory that they have of it.
  static Rig& shared(const std::string& backend = "reference", int threads = 1, std::optional<KvType> kv = {}) {
    using Rigs = std::map<std::tuple<std::string, int, std::optional<KvType>>, std::unique_ptr<Rig>>;
    static Rigs& rigs = *new Rigs;
    std::unique_ptr<Rig>& rig = rigs[{backend, threads, kv}];
    if (!rig) rig = std::make_unique<Rig>(backend, threads, kv);
    return *rig;
  }

  Transformer& target() { return target_.model; }
  Transformer& draft() { return draft_.model; }
  KvType kv_type() const { return kv_type_; }

  // `verifier`: in place of the rule of the options.
  Engine engine(std::unique_ptr<Drafter> drafter, const RigOptions& o = {},
                std::unique_ptr<Verifier> verifier = nullptr) {
    if (!verifier) verifier = make_verifier(o.rule);
    return Engine({.target = &target_.model,
                   .cache = target_.model.make_cache(o.capacity, kv_type()),
                   .drafter = std::move(drafter),
                   .policy = policy(o),
                   .verifier = std::move(verifier),
                   .sampler = Sampler(o.sampling, {o.seed, 0}, o.mask, o.constraint),
                   .prefill_chunk = o.prefill_chunk,
                   .logprobs = o.logprobs});
  }

  static std::unique_ptr<LengthPolicy> policy(const RigOptions& o) {
    if (o.length != kAuto) return std::make_unique<FixedLength>(o.length, o.max_nodes, 0, o.shape);
    CostModel costs;
    costs.target = PassCosts(std::vector<RowSeconds>{{1, 1}, {6, 1.2}, {8, 1.4}, {16, 2.1}});
    costs.draft = PassCosts(std::vector<RowSeconds>{{1, 0.3}, {64, 1.5}});
    return std::make_unique<AutoLength>(costs, o.max_nodes, 0, false);
  }

  // The drafters of the product by their names; "self": the target drafts for itself; "cheap-model": the draft with
  // some rows of its head and matrices in Q4_0; "retokenize": a model with another vocabulary drafts through text,
  // "retokenize-hybrid" with repeats, "retokenize-self" the target for itself; "reuse": hybrid without a model.
  std::unique_ptr<Drafter> drafter(const std::string& kind, const RigOptions& o = {}, int context = 0) {
    if (kind == "retokenize-self") {
      RigOptions greedy = o;
      greedy.sampling.temperature = 0;
      greedy.constraint = nullptr;
      return std::make_unique<RetokenizingDrafter>(drafter("self", greedy, context), *words_, *words_, o.constraint);
    }
    DrafterSetup setup;
    const bool foreign = kind == "retokenize" || kind == "retokenize-hybrid";
    const bool product = kind == "none" || kind == "model" || kind == "ngram" || kind == "recycle" || kind == "hybrid";
    setup.kind = product ? kind : kind == "retokenize-hybrid" || kind == "reuse" ? "hybrid" : "model";
    setup.sampling = o.sampling;
    setup.noise = {o.seed, 0};
    setup.draw = make_verifier(o.rule)->draft_draw();
    setup.model = kind == "self"          ? &target_.model
                  : kind == "cheap-model" ? &cheap_draft_.model
                  : foreign               ? &foreign_draft_.model
                  : kind == "reuse"       ? nullptr
                                          : &draft_.model;
    if (foreign) {
      setup.target_words = words_.get();
      setup.draft_words = foreign_words_.get();
    }
    setup.context = context > 0 ? context : o.capacity;
    setup.kv_type = o.draft_kv.value_or(kv_type());
    setup.mask = o.mask;
    setup.constraint = o.constraint;
    setup.min_match = 1;
    return make_drafter(setup);
  }
  // Every kind that the tests go through; `truth`: the whole sequence, prompt included.
  static std::vector<std::string> kinds() {
    return {
        "none",       "ngram",      "recycle",           "reuse",           "model",  "cheap-model", "self",
        "hybrid",     "retokenize", "retokenize-hybrid", "retokenize-self", "oracle", "wrong",       "wrong-after-1",
        "duplicates", "random-tree"};
  }
  std::unique_ptr<Drafter> any_drafter(const std::string& kind, const std::vector<TokenId>& truth,
                                       const RigOptions& o = {}) {
    if (kind == "oracle") return oracle(truth);
    if (kind == "wrong") return wrong_after(0, truth);
    if (kind == "wrong-after-1") return wrong_after(1, truth);
    if (kind == "duplicates") return std::make_unique<DuplicateSiblings>(truth);
    if (kind == "random-tree") {
      std::vector<TokenId> words(kWords);
      std::iota(words.begin(), words.end(), 0);
      return std::make_unique<RandomTreeDrafter>(o.seed, words, truth);
    }
    return drafter(kind, o);
  }

  // Prompt and its plain answer of `count` tokens.
  std::vector<TokenId> plain(const std::vector<TokenId>& prompt, int count, const RigOptions& o = {});

  // All layers of the cache that a prefill of these tokens leaves.
  std::vector<std::vector<std::byte>> prefilled(Transformer& model, std::span<const TokenId> tokens, int capacity) {
    KvCache cache = model.make_cache(capacity, kv_type());
    feed(model, cache, tokens);
    return layers(cache, model.spec().layers);
  }
  static std::vector<std::vector<std::byte>> layers(const KvCache& cache, int count) {
    std::vector<std::vector<std::byte>> bytes;
    for (int i = 0; i < count; ++i) bytes.push_back(cache.snapshot(i));
    return bytes;
  }
  // The target's cache holds the committed tokens less the pending one, bit for bit as a prefill of them.
  void expect_true_cache(const Engine& engine) {
    ASSERT_EQ(engine.cache().size(), engine.context().size() - 1);
    const std::span<const TokenId> held = engine.context().tokens().first(engine.cache().size());
    EXPECT_EQ(layers(engine.cache(), target().spec().layers), prefilled(target(), held, engine.cache().capacity()));
  }

 private:
  static TinyOptions options(const std::string& backend, double noise, std::optional<KvType> kv,
                             const std::string& architecture = "qwen2") {
    TinyOptions options;
    options.architecture = architecture;
    options.width = options.ffn = 32;
    options.heads = 2;
    options.kv_heads = 1;
    if (kv == KvType::q8_0) options.head_dim = kKvBlock;
    options.format = backend == "reference" ? Format::f32 : Format::q8_0;
    options.tied = false;  // a tied embedding makes a random model repeat one token for ever
    options.noise = noise;
    return options;
  }
  static TinyOptions foreign_options(const std::string& backend, std::optional<KvType> kv) {
    TinyOptions foreign = options(backend, 0, kv);
    foreign.vocabulary = other_tiny_vocabulary();
    foreign.seed = 2;
    return foreign;
  }
  // Two of three tokens, the last one of the vocabulary among them.
  static WeightOptions cheap_weights() {
    WeightOptions weights{.quantize = Format::q4_0, .head_tokens = {}};
    for (TokenId token = 0; token < 108; ++token) {
      if (token % 3 != 0) weights.head_tokens.push_back(token);
    }
    return weights;
  }
  TinyModel target_, draft_, cheap_draft_, foreign_draft_;
  std::unique_ptr<Tokenizer> words_ = make_tokenizer(tiny_vocabulary(), "tiny.gguf");
  std::unique_ptr<Tokenizer> foreign_words_ = make_tokenizer(other_tiny_vocabulary(), "foreign.gguf");
  KvType kv_type_;
};

// Prefills the prompt and commits the first token.
inline TokenId begin(Engine& engine, const std::vector<TokenId>& prompt) {
  engine.start(prompt);
  while (engine.prefill_chunk()) continue;
  return engine.first_token();
}

// One step with all that holds after each: what was emitted is a path of the tree and one token more, the counts agree,
// and nothing but the pending token waits for the cache. Returns how many tokens were committed.
inline int checked_step(Engine& engine, int wanted) {
  const Metrics before = engine.metrics();
  const int base = engine.context().size();
  const std::span<const TokenId> committed = engine.step(wanted);
  const int count = static_cast<int>(committed.size());
  const Metrics& after = engine.metrics();
  const TokenTree& tree = engine.last_tree();
  EXPECT_LE(count, wanted);
  EXPECT_LE(count, tree.max_depth() + 1);
  EXPECT_EQ(after.steps, before.steps + 1);
  EXPECT_EQ(count, after.total.accepted - before.total.accepted + 1);
  EXPECT_EQ(tree.size() - 1, after.total.proposed - before.total.proposed);
  EXPECT_LE(after.total.accepted, after.total.tested);
  EXPECT_LE(after.total.tested, after.total.proposed);
  EXPECT_EQ(after.generated, 1 + after.total.accepted + after.steps - after.cut);
  EXPECT_EQ(after.steps_by_rows[tree.size()], before.steps_by_rows[tree.size()] + 1);
  int node = 0;
  for (int i = 0; i + 1 < count; ++i) {
    node = tree.child(node, committed[i]);
    if (node < 0) {
      ADD_FAILURE() << "token " << i << " of the step is not on a path of the tree";
      break;
    }
  }
  EXPECT_EQ(engine.context().size(), base + count);
  EXPECT_EQ(engine.cache().size(), base + count - 1);
  return count;
}

// Prompt and an answer of `count` tokens, every step checked.
inline std::vector<TokenId> run(Engine& engine, const std::vector<TokenId>& prompt, int count) {
  begin(engine, prompt);
  for (int done = 1; done < count;) done += checked_step(engine, count - done);
  return {engine.context().tokens().begin(), engine.context().tokens().end()};
}

inline std::vector<TokenId> Rig::plain(const std::vector<TokenId>& prompt, int count, const RigOptions& o) {
  Engine plain_engine = engine(drafter("none"), o);
  return run(plain_engine, prompt, count);
}

inline std::vector<TokenId> random_prompt(std::uint64_t seed, int count) {
  std::mt19937_64 random(seed);
  return random_tokens(random, count);
}

}  // namespace tandem::test
