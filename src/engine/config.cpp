#include "src/engine/config.h"

#include <algorithm>
#include <filesystem>
#include <limits>

#include "kernels/registry.h"
#include "src/base/yaml_tree.h"
#include "src/sample/logprobs.h"
#include "verify/verifier.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kAnyCount = std::numeric_limits<std::int32_t>::max();
constexpr double kNoLimit = std::numeric_limits<double>::infinity();
constexpr int kLongestChain = 63;  // node 0 of a tree of 64 is the pending token
constexpr int kDefaultNodes = 16;

std::optional<int> to_int(std::optional<std::int64_t> value) {
  return value ? std::optional(static_cast<int>(*value)) : std::nullopt;
}

// Paths are kept as written here; read_config finds the files once every key is known to be sound.
TargetConfig read_target(const Options& section) {
  TargetConfig target;
  target.model = section
                     .path("model", "required",
                           "GGUF file of the model whose text is produced, relative to the config file; a bare file "
                           "name is also looked up in the model folder ($TANDEM_MODELS, else "
                           "~/.cache/tandem/models).")
                     .value_or("");
  target.context = to_int(
      section.optional_integer("context", "min(model's limit, 4096)", 16, kAnyCount,
                               "Most tokens, prompt and answer together, that fit; at most the model's own limit."));
  return target;
}

void read_draft_lengths(const Options& section, DraftConfig& draft) {
  draft.length = to_int(section.integer_or("length", "auto", std::nullopt, 0, kLongestChain,
                                           "Tokens proposed in each step; 0 decodes plainly; auto proposes what "
                                           "brings the most tokens a second, by measured costs and acceptance."));
  const auto nodes =
      section.optional_integer("max_nodes", "16; with a number as draft.length, that + 1", 1, kMaxTreeNodes,
                               "Most rows of one verification pass, the pending token included. A fixed "
                               "draft.length makes a chain; more nodes than that let a draft model add "
                               "the likeliest siblings.");
  const int least = draft.length.value_or(0) + 1;
  if (nodes && *nodes < least) {
    section.refuse("max_nodes", fmt::format("expected at least {} (draft.length {} and the pending token), got {}",
                                            least, *draft.length, *nodes));
  }
  draft.max_nodes = nodes ? static_cast<int>(*nodes) : draft.length ? least : kDefaultNodes;
  draft.min_probability = section.real(
      "min_probability", 0, {0, 1}, "A model draft stops early at a token that it gives less probability than this.");
}

void read_ngram(const Options& section, DraftConfig& draft) {
  draft.ngram_min_match = static_cast<int>(
      section.integer("min_match", 2, 1, kAnyCount, "Shortest repeated run of tokens that an n-gram draft continues."));
  draft.ngram_max_match = static_cast<int>(
      section.integer("max_match", 64, 1, kAnyCount, "Longest run of tokens that an n-gram draft looks back over."));
  if (draft.ngram_min_match > draft.ngram_max_match) {
    section.refuse(section.has("max_match") ? "max_match" : "min_match",
                   fmt::format("expected min_match <= max_match, got min_match {} and max_match {}",
                               draft.ngram_min_match, draft.ngram_max_match));
  }
}

// What makes a step of a draft model cheaper, or possible at all.
void read_draft_cost(const Options& section, DraftConfig& draft) {
  const auto rows = section.integer_or("head_rows", "all", std::nullopt, 1, kAnyCount,
                                       "Rows of the draft's output head to keep, besides those of end tokens and of "
                                       "tokens in the text: a draft step reads less, other tokens are never proposed.");
  if (rows) draft.head_rows = static_cast<int>(*rows);
  draft.head_ranking = section
                           .path("head_ranking", "by id",
                                 "File that ranks the rows for draft.head_rows, one token id a line, the most useful "
                                 "first (scripts/rank_tokens makes one); ids that it leaves out follow by id.")
                           .value_or("");
  if (!draft.head_ranking.empty() && !draft.head_rows) {
    section.refuse("head_ranking", "it ranks the rows that draft.head_rows keeps, which is all");
  }
  draft.quantize = section.choice("quantize", "none", {"none", "q4_0", "q8_0"},
                                  "Converts the draft's larger matrices to this format at load; the answers keep the "
                                  "target's distribution whatever the draft is.");
  draft.retokenize = section.boolean("retokenize", false,
                                     "Lets a draft model with another vocabulary than the target's draft through text; "
                                     "the answers stay the target's.");
}

DraftConfig read_draft(const Options& section) {
  DraftConfig draft;
  const auto kind = section.optional_choice(
      "kind", "hybrid if draft.model is set, else ngram", {"none", "model", "ngram", "recycle", "hybrid"},
      "What proposes tokens: nothing, a smaller model, repeats in the text, what the "
      "target thought likely after the same token before, or repeats and, where there are none, the model if "
      "draft.model is set, else what the target thought likely.");
  draft.model = section
                    .path("model", "unset",
                          "GGUF file of the smaller model; found like target.model. It has the target's vocabulary, or "
                          "needs draft.retokenize.")
                    .value_or("");
  draft.kind = kind.value_or(draft.model.empty() ? "ngram" : "hybrid");
  if (draft.kind == "model" && draft.model.empty()) {
    section.refuse("kind", "model needs draft.model, the GGUF file of a smaller model, which is not set");
  }
  draft.context = to_int(section.optional_integer("context", "as the target", 16, kAnyCount,
                                                  "Most tokens that fit in the draft model's cache."));
  read_draft_lengths(section, draft);
  if (const auto cache = section.optional_choice("kv_cache", "as runtime.kv_cache", {"f32", "f16", "q8_0"},
                                                 "Type of the draft model's cached keys and values.")) {
    draft.kv_cache = kv_type_of(*cache);
  }
  read_draft_cost(section, draft);
  draft.corpus =
      section.texts("corpus",
                    "Files or folders whose texts n-gram drafts (kinds ngram and hybrid) continue too, where "
                    "they match longer than prompt and answer do; indexed once, at most 32 MiB of text in "
                    "files of at most 8 MiB.");
  read_ngram(section.section("ngram"), draft);
  return draft;
}

VerifyConfig read_verify(const Options& section) {
  VerifyConfig verify;
  verify.rule = section.choice("rule", "rejection", {"rejection", "block", "coupled", "typical"},
                               "How proposals are accepted: rejection and block keep the target's distribution (block "
                               "accepts at least as much), coupled gives the very text of plain decoding for the seed, "
                               "typical is lossy.");
  verify.lossy = section.boolean("lossy", false, "Allows a rule that changes the target's distribution (typical).");
  if (!verify.lossy && !make_verifier(verify.rule)->lossless()) {
    section.refuse("rule",
                   fmt::format("{} changes the target's distribution; it needs verify.lossy: true", verify.rule));
  }
  return verify;
}

void read_penalties(const Options& section, SamplingOptions& sampling) {
  sampling.repetition_penalty =
      section.real("repetition_penalty", 1, {0, kNoLimit, true},
                   "Divides the positive logits of recent tokens and multiplies the others, so that above 1 they grow "
                   "less likely; 1 is off.");
  sampling.presence_penalty = section.real("presence_penalty", 0, {-kNoLimit, kNoLimit},
                                           "Taken once from the logit of each recent token; 0 is off.");
  sampling.frequency_penalty =
      section.real("frequency_penalty", 0, {-kNoLimit, kNoLimit},
                   "Taken from the logit of a recent token for each time that it occurred; 0 is off.");
  sampling.penalty_window = static_cast<int>(
      section.integer("penalty_window", 64, 0, kAnyCount,
                      "How many of the last tokens, the prompt's included, are recent to the penalties."));
  for (const auto& [id, bias] : section.integer_reals(
           "logit_bias", 0, kAnyCount, "Added to the logits of these token ids before anything else; -inf bans one.")) {
    sampling.logit_bias.emplace_back(static_cast<TokenId>(id), bias);
  }
}

void read_sampling(const Options& section, Config& config) {
  SamplingOptions& sampling = config.sampling;
  sampling.temperature =
      section.real("temperature", 0.7, {0, kNoLimit}, "Divides the logits; 0 always takes the most likely token.");
  sampling.top_k =
      static_cast<int>(section.integer("top_k", 40, 0, kAnyCount, "Keeps this many most likely tokens; 0 is off."));
  sampling.top_p = section.real("top_p", 0.95, {0, 1},
                                "Keeps the most likely tokens until their probability reaches this; 1 is off.");
  sampling.min_p =
      section.real("min_p", 0, {0, 1}, "Keeps tokens with at least this share of the largest probability; 0 is off.");
  config.seed = section.integer_or("seed", "random", std::nullopt, 0, std::numeric_limits<std::uint64_t>::max(),
                                   "Fixes every random draw; a random seed is printed so that a run can be repeated.");
  read_penalties(section, sampling);
  config.logprobs = static_cast<int>(
      section.integer("logprobs", 0, 0, kMaxLogprobs,
                      "Adds to the JSON report the natural log-probability of each answer token and of so many best "
                      "ones, as the model alone gave them: before bias, penalties, temperature and filters; 0 is "
                      "off."));
}

StopConfig read_stop(const Options& section) {
  StopConfig stop;
  stop.max_tokens = static_cast<int>(section.integer("max_tokens", 512, 1, kAnyCount, "Most tokens of an answer."));
  stop.strings = section.texts("strings", "Texts that end the answer, which leaves them out.");
  if (std::find(stop.strings.begin(), stop.strings.end(), "") != stop.strings.end()) {
    section.refuse("strings", "expected texts that are not empty, got \"\"");
  }
  for (const std::int64_t id :
       section.integers("token_ids", 0, kAnyCount, "Token ids that end the answer, besides the model's own.")) {
    stop.token_ids.push_back(static_cast<TokenId>(id));
  }
  constexpr double kLongestSeconds = 1e9;  // some 30 years: any clock can add it without overflow
  stop.time_limit_seconds = section.optional_real("time_limit_seconds", "none", {0, kLongestSeconds, true},
                                                  "Ends the answer after this many seconds.");
  return stop;
}

ConstraintConfig read_constraint(const Options& section) {
  ConstraintConfig constraint;
  constraint.grammar =
      section
          .path("grammar", "unset",
                "File with a GBNF grammar that each answer follows. At most one constraint may be set.")
          .value_or("");
  constraint.json_schema =
      section.path("json_schema", "unset", "File with a JSON schema that each answer is valid by.").value_or("");
  constraint.json = section.boolean("json", false, "Makes each answer one JSON value.");
  constraint.regex = section.text(
      "regex", "unset", "Regular expression that the whole of each answer matches; in YAML it mostly takes quotes.");
  constraint.choices = section.texts("choices", "Texts of which each answer is one.");
  if (std::ranges::find(constraint.choices, "") != constraint.choices.end()) {
    section.refuse("choices", "expected texts that are not empty, got \"\"");
  }
  std::string first;
  for (const auto& [key, is_set] :
       {std::pair{"grammar", !constraint.grammar.empty()}, std::pair{"json_schema", !constraint.json_schema.empty()},
        std::pair{"json", constraint.json}, std::pair{"regex", constraint.regex.has_value()},
        std::pair{"choices", !constraint.choices.empty()}}) {
    if (!is_set) continue;
    if (!first.empty()) {
      section.refuse(
          key,
          fmt::format("expected at most one constraint, got constraint.{} too (an empty value unsets one)", first));
    }
    first = key;
  }
  return constraint;
}

PromptConfig read_prompt(const Options& section) {
  PromptConfig prompt;
  prompt.chat =
      section.optional_boolean("chat", "true if the model has a chat template",
                               "Whether a prompt is a user's turn in the model's chat template, or raw text.");
  prompt.system = section.text("system", "none", "System message put before the first turn.").value_or("");
  return prompt;
}

RuntimeConfig read_runtime(const Options& section) {
  RuntimeConfig runtime;
  runtime.backend = section.choice("backend", "auto", {"auto", "cpu", "cuda", "cuda-simt"},
                                   "Where the models run; auto takes a GPU where there is one. cuda-simt is the GPU's "
                                   "code in a slow emulation, for tests.");
  if (const std::string reason = why_not_built(runtime.backend); !reason.empty()) section.refuse("backend", reason);
  const auto threads = section.integer_or("threads", "auto", std::nullopt, 1, 256,
                                          "Threads that compute; auto takes the processors this process may use.");
  runtime.threads = static_cast<int>(threads.value_or(0));
  runtime.kv_cache =
      kv_type_of(section.choice("kv_cache", "f16", {"f32", "f16", "q8_0"},
                                "Type of the cached keys and values. q8_0 takes about half the memory of "
                                "f16; heads must be a multiple of 32 wide."));
  constexpr std::int64_t kMostPrefillRows = 8192;
  runtime.prefill_chunk = static_cast<int>(
      section.integer("prefill_chunk", 512, 1, kMostPrefillRows, "Prompt tokens that go through the model at once."));
  runtime.context_full = section.choice(
      "context_full", "stop", {"stop", "drop_oldest_turns"},
      "What tandem chat does when the next turn and room for its answer (stop.max_tokens, but at most half the "
      "context) "
      "do not fit: stop keeps all turns, refuses one that does not fit and ends an answer where the context is full; "
      "drop_oldest_turns forgets the oldest turns with their answers, never the system prompt.");
  return runtime;
}

// Every key, typed and in range; paths as written. The order here is the order of the documentation.
Config read_keys(Options options) {
  Config config;
  config.source = options.name();
  config.target = read_target(options.section("target"));
  config.draft = read_draft(options.section("draft"));
  config.verify = read_verify(options.section("verify"));
  read_sampling(options.section("sampling"), config);
  config.stop = read_stop(options.section("stop"));
  config.constraint = read_constraint(options.section("constraint"));
  config.prompt = read_prompt(options.section("prompt"));
  config.runtime = read_runtime(options.section("runtime"));
  config.options = std::move(options);
  return config;
}

void find_file_of(const Options& options, std::string_view key, std::string& path) {
  try {
    path = find_model(path, options.base_folder(key), ErrorKind::config);
  } catch (const Error& error) {
    options.refuse(key, error.what());
  }
}

void find_corpora_of(const Options& options, std::vector<std::string>& corpora) {
  for (std::string& path : corpora) {
    try {
      path = find_corpus(path, options.base_folder("draft.corpus"));
    } catch (const Error& error) {
      options.refuse("draft.corpus", error.what());
    }
  }
}

void find_constraint_of(const Options& options, std::string_view key, std::string& path) {
  if (path.empty()) return;
  try {
    path = find_file(path, options.base_folder(key));
  } catch (const Error& error) {
    options.refuse(key, error.what());
  }
}

}  // namespace

std::string_view ConstraintConfig::kind() const {
  if (!grammar.empty()) return "grammar";
  if (!json_schema.empty()) return "json_schema";
  if (json) return "json";
  if (regex) return "regex";
  return choices.empty() ? "" : "choices";
}

Config read_config(Options options) {
  Config config = read_keys(std::move(options));
  config.options.require_all_read();
  if (config.target.model.empty())
    config.options.refuse("target.model", "expected the GGUF file of a model, got nothing");
  find_file_of(config.options, "target.model", config.target.model);
  if (!config.draft.model.empty()) find_file_of(config.options, "draft.model", config.draft.model);
  if (!config.draft.head_ranking.empty()) {
    find_file_of(config.options, "draft.head_ranking", config.draft.head_ranking);
  }
  find_corpora_of(config.options, config.draft.corpus);
  find_constraint_of(config.options, "constraint.grammar", config.constraint.grammar);
  find_constraint_of(config.options, "constraint.json_schema", config.constraint.json_schema);
  return config;
}

std::vector<OptionDoc> config_documentation() { return read_keys(Options()).options.documentation(); }

}  // namespace tandem
