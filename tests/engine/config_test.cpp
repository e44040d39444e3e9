#include "src/engine/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <string>

#include "kernels/registry.h"
#include "tests/base/temp_dir.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Optional;
using ::testing::StartsWith;

// Sets an environment variable for one test and puts the old value back.
class ScopedVariable {
 public:
  ScopedVariable(const char* name, const std::string& value) : name_(name) {
    if (const char* old = ::getenv(name)) old_ = old;
    ::setenv(name, value.c_str(), 1);
  }
  ~ScopedVariable() {
    if (old_) {
      ::setenv(name_, old_->c_str(), 1);
    } else {
      ::unsetenv(name_);
    }
  }
  ScopedVariable(const ScopedVariable&) = delete;
  ScopedVariable& operator=(const ScopedVariable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> old_;
};

// A model folder with empty files: settings are read without any real model.
class ConfigTest : public ::testing::Test {
 protected:
  ConfigTest() : variable_("TANDEM_MODELS", models_.path()) {
    for (const char* name : {"target.gguf", "draft.gguf", "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
                             "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf", "smollm2-135m-instruct-q4_1.gguf"}) {
      models_.file(name, "");
    }
  }

  std::string model(const std::string& name) const { return fs::canonical(models_.path()).string() + "/" + name; }

  test::TempDir models_;
  ScopedVariable variable_;
};
using ConfigKeys = ConfigTest;
using ConfigDraft = ConfigTest;
using ConfigRefusals = ConfigTest;
using ConfigSet = ConfigTest;
using ConfigPaths = ConfigTest;
using ConfigYaml = ConfigTest;
using ConfigFiles = ConfigTest;

// A minimal file with `rest` after it; the first free line is 2.
Config read(const std::string& rest, const std::vector<std::string>& sets = {}) {
  Options options = Options::from_text("target: {model: target.gguf}\n" + rest, "c/a.yaml");
  for (const std::string& set : sets) options.set(set);
  return read_config(options);
}

std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::config) << error.what();
    return error.what();
  }
  return "no error";
}

std::string error_of(const std::string& rest, const std::vector<std::string>& sets = {}) {
  return message_of([&] { read(rest, sets); });
}

// `a.b.c` and a value as YAML text of nested flow maps on one line.
std::string nested(const std::string& key, const std::string& value) {
  const std::size_t dot = key.find('.');
  if (dot == std::string::npos) return key + ": " + value;
  const std::size_t last = key.rfind('.');
  if (dot == last) return key.substr(0, dot) + ": {" + key.substr(dot + 1) + ": " + value + "}";
  return key.substr(0, dot) + ": {" + nested(key.substr(dot + 1), value) + "}";
}

TEST_F(ConfigKeys, DefaultsAreThoseOfTheDocumentedTable) {
  const Config config = read("");
  EXPECT_EQ(config.source, "c/a.yaml");
  EXPECT_EQ(config.target.model, model("target.gguf"));
  EXPECT_EQ(config.target.context, std::nullopt);
  EXPECT_EQ(config.draft.kind, "ngram");
  EXPECT_EQ(config.draft.model, "");
  EXPECT_EQ(config.draft.context, std::nullopt);
  EXPECT_EQ(config.draft.length, std::nullopt);
  EXPECT_EQ(config.draft.max_nodes, 16);
  EXPECT_EQ(config.draft.min_probability, 0);
  EXPECT_EQ(config.draft.kv_cache, std::nullopt);
  EXPECT_EQ(config.draft.ngram_min_match, 2);
  EXPECT_EQ(config.draft.ngram_max_match, 64);
  EXPECT_EQ(config.verify.rule, "rejection");
  EXPECT_EQ(config.sampling.temperature, 0.7);
  EXPECT_EQ(config.sampling.top_k, 40);
  EXPECT_EQ(config.sampling.top_p, 0.95);
  EXPECT_EQ(config.sampling.min_p, 0);
  EXPECT_EQ(config.seed, std::nullopt);
  EXPECT_EQ(config.stop.max_tokens, 512);
  EXPECT_THAT(config.stop.strings, IsEmpty());
  EXPECT_THAT(config.stop.token_ids, IsEmpty());
  EXPECT_EQ(config.stop.time_limit_seconds, std::nullopt);
  EXPECT_EQ(config.prompt.chat, std::nullopt);
  EXPECT_EQ(config.prompt.system, "");
  EXPECT_EQ(config.runtime.backend, "auto");
  EXPECT_EQ(config.runtime.threads, 0);
  EXPECT_EQ(config.runtime.kv_cache, KvType::f16);
  EXPECT_EQ(config.runtime.prefill_chunk, 512);
}

TEST_F(ConfigKeys, EveryKeyIsReadIntoItsField) {
  const Config config = read_config(Options::from_text(R"(
target: {model: target.gguf, context: 2048}
draft:
  kind: model
  model: draft.gguf
  context: 1024
  length: 20
  max_nodes: 33
  min_probability: 0.25
  kv_cache: f32
  ngram: {min_match: 3, max_match: 5}
verify: {rule: typical, lossy: true}
sampling: {temperature: 1e-3, top_k: 0, top_p: 0.5, min_p: 0.125, seed: 18446744073709551615}
stop: {max_tokens: 9, strings: [no, yes, 1], token_ids: [0, 7], time_limit_seconds: 1.5}
prompt: {chat: false, system: "Be brief: yes."}
runtime: {backend: cpu, threads: 256, kv_cache: q8_0, prefill_chunk: 1}
)",
                                                       "a.yaml"));
  EXPECT_THAT(config.target.context, Optional(2048));
  EXPECT_EQ(config.draft.kind, "model");
  EXPECT_EQ(config.draft.model, model("draft.gguf"));
  EXPECT_THAT(config.draft.context, Optional(1024));
  EXPECT_EQ(config.draft.length, 20);
  EXPECT_EQ(config.draft.max_nodes, 33);
  EXPECT_EQ(config.draft.min_probability, 0.25);
  EXPECT_THAT(config.draft.kv_cache, Optional(KvType::f32));
  EXPECT_EQ(config.draft.ngram_min_match, 3);
  EXPECT_EQ(config.draft.ngram_max_match, 5);
  EXPECT_EQ(config.verify.rule, "typical");
  EXPECT_TRUE(config.verify.lossy);
  EXPECT_EQ(config.sampling.temperature, 0.001);
  EXPECT_EQ(config.sampling.top_k, 0);
  EXPECT_EQ(config.sampling.top_p, 0.5);
  EXPECT_EQ(config.sampling.min_p, 0.125);
  EXPECT_THAT(config.seed, Optional(UINT64_MAX));
  EXPECT_EQ(config.stop.max_tokens, 9);
  EXPECT_THAT(config.stop.strings, ElementsAre("no", "yes", "1"));
  EXPECT_THAT(config.stop.token_ids, ElementsAre(0, 7));
  EXPECT_THAT(config.stop.time_limit_seconds, Optional(1.5));
  EXPECT_THAT(config.prompt.chat, Optional(false));
  EXPECT_EQ(config.prompt.system, "Be brief: yes.");
  EXPECT_EQ(config.runtime.backend, "cpu");
  EXPECT_EQ(config.runtime.threads, 256);
  EXPECT_EQ(config.runtime.kv_cache, KvType::q8_0);
  EXPECT_EQ(config.runtime.prefill_chunk, 1);
}

TEST_F(ConfigKeys, EveryDocumentedKeyMayBeNullAndThenCountsAsUnset) {
  for (const OptionDoc& doc : config_documentation()) {
    if (doc.key.starts_with("target.model")) continue;
    for (const char* null : {"", "null", "~"}) {
      const std::string text = doc.key == "target.context" ? "" : nested(doc.key, null) + "\n";
      ASSERT_EQ(error_of(text, {doc.key + "=" + null}), "no error") << doc.key;
      EXPECT_EQ(to_yaml(read(text)), to_yaml(read(""))) << doc.key;
    }
  }
}

TEST_F(ConfigKeys, EveryDocumentedKeyRefusesTheWrongShapeNamingPlaceKeyAndValue) {
  for (const OptionDoc& doc : config_documentation()) {
    if (doc.key.starts_with("target.")) continue;
    const bool list = doc.type.starts_with("list");
    const bool map = doc.type.starts_with("map");
    const std::string bad = map ? "[1]" : list ? "{a: 1}" : "[1]";
    EXPECT_THAT(error_of(nested(doc.key, bad)),
                AllOf(StartsWith("c/a.yaml:2: " + doc.key + ": expected "), HasSubstr(doc.type),
                      HasSubstr(list ? "got a map of 1" : "got a list of 1")));
    EXPECT_THAT(error_of("", {doc.key + "=" + bad}), StartsWith("--set " + doc.key + ": expected " + doc.type));
  }
}

TEST_F(ConfigKeys, ValuesOutsideTheRangeNamePlaceKeyLimitAndValue) {
  const std::vector<std::tuple<std::string, std::string, std::string>> cases = {
      {"draft.context", "15", "integer 16..2147483647"},
      {"draft.context", "-1", "integer 16..2147483647"},
      {"draft.context", "2147483648", "integer 16..2147483647"},
      {"draft.length", "64", "auto or integer 0..63"},
      {"draft.length", "-1", "auto or integer 0..63"},
      {"draft.length", "010", "auto or integer 0..63"},
      {"draft.length", "4.0", "auto or integer 0..63"},
      {"draft.length", "4294967300", "auto or integer 0..63"},
      {"draft.max_nodes", "0", "integer 1..64"},
      {"draft.max_nodes", "65", "integer 1..64"},
      {"draft.min_probability", "1.01", "number 0..1"},
      {"draft.min_probability", "-0.1", "number 0..1"},
      {"draft.kind", "Model", "none, model, ngram, recycle or hybrid"},
      {"draft.kv_cache", "f8", "f32, f16 or q8_0"},
      {"draft.ngram.min_match", "0", "integer 1.."},
      {"draft.head_rows", "0", "all or integer 1.."},
      {"draft.quantize", "q4_k", "none, q4_0 or q8_0"},
      {"draft.retokenize", "yes", "true or false"},
      {"verify.rule", "greedy", "rejection, block, coupled or typical"},
      {"verify.lossy", "1", "true or false"},
      {"sampling.temperature", "-0.1", "number >= 0"},
      {"sampling.temperature", ".inf", "number >= 0"},
      {"sampling.temperature", ".nan", "number >= 0"},
      {"sampling.top_k", "-1", "integer 0.."},
      {"sampling.top_k", "1e2", "integer 0.."},
      {"sampling.top_p", "1.5", "number 0..1"},
      {"sampling.min_p", "-1", "number 0..1"},
      {"sampling.seed", "18446744073709551616", "random or integer 0..18446744073709551615"},
      {"sampling.seed", "-1", "random or integer 0..18446744073709551615"},
      {"sampling.repetition_penalty", "0", "number > 0"},
      {"sampling.repetition_penalty", "-1.1", "number > 0"},
      {"sampling.presence_penalty", ".inf", "number"},
      {"sampling.frequency_penalty", "much", "number"},
      {"sampling.penalty_window", "-1", "integer 0..2147483647"},
      {"sampling.penalty_window", "all", "integer 0..2147483647"},
      {"sampling.logprobs", "-1", "integer 0..20"},
      {"sampling.logprobs", "21", "integer 0..20"},
      {"stop.max_tokens", "0", "integer 1..2147483647"},
      {"stop.token_ids", "[-1]", "list, each integer 0..2147483647"},
      {"stop.token_ids", "[2147483648]", "list, each integer 0..2147483647"},
      {"stop.time_limit_seconds", "0", "number > 0"},
      {"stop.time_limit_seconds", "1e10", "number > 0"},
      {"prompt.chat", "on", "true or false"},
      {"runtime.backend", "gpu", "auto, cpu, cuda or cuda-simt"},
      {"runtime.threads", "-2", "auto or integer 1..256"},
      {"runtime.threads", "0", "auto or integer 1..256"},
      {"runtime.threads", "257", "auto or integer 1..256"},
      {"runtime.kv_cache", "16", "f32, f16 or q8_0"},
      {"runtime.prefill_chunk", "0", "integer 1.."},
      {"runtime.context_full", "drop", "stop or drop_oldest_turns"},
  };
  for (const auto& [key, value, limit] : cases) {
    const std::string shown = value[0] == '[' ? value.substr(1, value.size() - 2) : value;
    EXPECT_THAT(error_of(fmt::format("\n{}", nested(key, value))),
                AllOf(StartsWith(fmt::format("c/a.yaml:3: {}: expected {}", key, limit)), HasSubstr("got " + shown)));
    EXPECT_THAT(error_of("", {fmt::format("{}={}", key, value)}),
                AllOf(StartsWith(fmt::format("--set {}: expected {}", key, limit)), HasSubstr("got " + shown)));
  }
  EXPECT_THAT(error_of("stop: {strings: [a, \"\"]}"),
              HasSubstr("c/a.yaml:2: stop.strings: expected texts that are not"));
}

TEST_F(ConfigKeys, UnknownKeysAreRefusedEverywhereWithTheNearestName) {
  EXPECT_EQ(error_of("draft:\n  lenght: 4\n"), "c/a.yaml:3: unknown key draft.lenght (did you mean length?)");
  EXPECT_EQ(error_of("runtim: {threads: 1}"), "c/a.yaml:2: unknown key runtim (did you mean runtime?)");
  EXPECT_EQ(error_of("temperature: 0"), "c/a.yaml:2: unknown key temperature (did you mean sampling.temperature?)");
  EXPECT_EQ(error_of("draft_model:\n"), "c/a.yaml:2: unknown key draft_model");
  for (const char* section :
       {"draft", "verify", "sampling", "stop", "constraint", "prompt", "runtime", "draft.ngram"}) {
    EXPECT_THAT(error_of(nested(fmt::format("{}.zzzzz", section), "1")),
                StartsWith(fmt::format("c/a.yaml:2: unknown key {}.zzzzz", section)));
    EXPECT_THAT(error_of(nested(section, "5")),
                StartsWith(fmt::format("c/a.yaml:2: {}: expected keys below it, got 5", section)));
  }
  // A misspelt required key is reported as misspelt, not as missing.
  EXPECT_EQ(message_of([] { read_config(Options::from_text("target:\n  modle: x.gguf\n", "a.yaml")); }),
            "a.yaml:2: unknown key target.modle (did you mean model?)");
}

TEST_F(ConfigKeys, TheTargetIsRequired) {
  for (const char* text : {"", "target:", "target: {model: }", "target: {model: ~, context: 99}"}) {
    EXPECT_THAT(message_of([&] { read_config(Options::from_text(text, "a.yaml")); }),
                AllOf(StartsWith("a.yaml"), HasSubstr("target.model: expected the GGUF file of a model, got nothing")));
  }
  EXPECT_EQ(message_of([] { read_config(Options::from_text("target: {model: ''}", "a.yaml")); }),
            "a.yaml:1: target.model: expected path, got \"\"");
}

TEST_F(ConfigKeys, NothingIsOpenedForANullDraftModel) {
  for (const char* null : {"", "~", "null"}) {
    const Config config = read("draft:\n  model: " + std::string(null) + "\n");
    EXPECT_EQ(config.draft.model, "");
    EXPECT_EQ(config.draft.kind, "ngram");
  }
}

TEST_F(ConfigDraft, KindFollowsTheDraftModel) {
  EXPECT_EQ(read("draft: {model: draft.gguf}").draft.kind, "hybrid");
  EXPECT_EQ(read("draft: {length: 2}").draft.kind, "ngram");
  for (const char* kind : {"none", "ngram"}) {
    const Config config = read("draft: {kind: model, model: draft.gguf}", {std::string("draft.kind=") + kind});
    EXPECT_EQ(config.draft.kind, kind);
    EXPECT_EQ(config.draft.model, model("draft.gguf"));
  }
  EXPECT_EQ(error_of("draft:\n  kind: model\n"),
            "c/a.yaml:3: draft.kind: model needs draft.model, the GGUF file of a smaller model, which is not set");
  EXPECT_THAT(error_of("", {"draft.kind=model"}), StartsWith("--set draft.kind: model needs draft.model"));
  const DraftConfig without = read("draft: {kind: hybrid}").draft;  // repeats and recycled tokens need none
  EXPECT_EQ(without.kind, "hybrid");
  EXPECT_FALSE(without.uses_model());
}

TEST_F(ConfigDraft, MaxNodesHoldsTheWholeProposal) {
  EXPECT_EQ(read("draft: {length: auto}").draft.max_nodes, 16);
  EXPECT_EQ(read("draft: {length: auto, max_nodes: 1}").draft.max_nodes, 1);
  EXPECT_EQ(read("draft: {length: 15}").draft.max_nodes, 16);
  EXPECT_EQ(read("draft: {length: 16}").draft.max_nodes, 17);
  EXPECT_EQ(read("draft: {length: 63}").draft.max_nodes, 64);
  EXPECT_EQ(read("draft: {length: 0}").draft.max_nodes, 1);
  EXPECT_EQ(read("draft: {length: 0, max_nodes: 1}").draft.max_nodes, 1);
  EXPECT_EQ(read("draft: {length: 8, max_nodes: 9}").draft.max_nodes, 9);
  EXPECT_EQ(error_of("draft:\n  length: 8\n  max_nodes: 8\n"),
            "c/a.yaml:4: draft.max_nodes: expected at least 9 (draft.length 8 and the pending token), got 8");
  EXPECT_THAT(error_of("draft: {max_nodes: 16}", {"draft.length=16"}), HasSubstr("expected at least 17"));
}

TEST_F(ConfigDraft, NgramMatchesAreOrdered) {
  EXPECT_EQ(read("draft: {ngram: {min_match: 64}}").draft.ngram_min_match, 64);
  EXPECT_EQ(error_of("draft:\n  ngram:\n    min_match: 65\n"),
            "c/a.yaml:4: draft.ngram.min_match: expected min_match <= max_match, got min_match 65 and max_match 64");
  EXPECT_THAT(error_of("draft: {ngram: {max_match: 1}}"), StartsWith("c/a.yaml:2: draft.ngram.max_match: expected"));
}

TEST_F(ConfigDraft, CheaperDraftsAreReadAndWritten) {
  const Config plain = read("");
  EXPECT_EQ(plain.draft.head_rows, std::nullopt);
  EXPECT_EQ(plain.draft.head_ranking, "");
  EXPECT_EQ(plain.draft.quantize, "none");
  const Config config =
      read("draft: {kind: recycle, head_rows: 32768, quantize: q4_0}\n", {"draft.head_ranking=" + model("draft.gguf")});
  EXPECT_EQ(config.draft.kind, "recycle");
  EXPECT_EQ(config.draft.head_rows, 32768);
  EXPECT_EQ(config.draft.head_ranking, model("draft.gguf"));
  EXPECT_EQ(config.draft.quantize, "q4_0");
  EXPECT_THAT(to_yaml(config),
              HasSubstr("  head_rows: 32768\n  head_ranking: \"" + model("draft.gguf") + "\"\n  quantize: q4_0\n"));
}

TEST_F(ConfigDraft, CorpusIsFilesAndFoldersThatExist) {
  const std::string folder = fs::canonical(models_.path()).string();
  const DraftConfig draft = read("draft: {corpus: [" + folder + "/../" + fs::path(folder).filename().string() + ", " +
                                 model("draft.gguf") + "]}")
                                .draft;
  EXPECT_THAT(draft.corpus, ElementsAre(folder, model("draft.gguf")));
  EXPECT_THAT(read("", {"draft.corpus=" + folder}).draft.corpus, ElementsAre(folder));
  EXPECT_THAT(to_yaml(read("", {"draft.corpus=[" + folder + "]"})), HasSubstr("  corpus: [\"" + folder + "\"]\n"));
  EXPECT_THAT(error_of("draft:\n  corpus: [/no/such]\n"),
              AllOf(StartsWith("c/a.yaml:3: draft.corpus: no file or folder /no/such"), HasSubstr("tried ")));
  EXPECT_THAT(error_of("", {"draft.corpus=missing"}), StartsWith("--set draft.corpus: no file or folder missing"));
  EXPECT_THAT(error_of("draft: {corpus: [\"\"]}"), StartsWith("c/a.yaml:2: draft.corpus: expected files or folders"));
}

TEST_F(ConfigDraft, ARankingNeedsRowsToRankAndAFile) {
  EXPECT_EQ(error_of("draft: {head_ranking: a.txt}"),
            "c/a.yaml:2: draft.head_ranking: it ranks the rows that draft.head_rows keeps, which is all");
  EXPECT_THAT(error_of("draft: {head_rows: 100, head_ranking: a.txt}"),
              StartsWith("c/a.yaml:2: draft.head_ranking: no file a.txt, tried "));
}

TEST_F(ConfigRefusals, BackendsOfThisBuildAreTaken) {
  for (const std::string_view kind : backend_kinds()) {
    if (kind == "reference") continue;  // --reference, on the command line
    EXPECT_EQ(read(nested("runtime.backend", std::string(kind))).runtime.backend, kind);
  }
}

TEST_F(ConfigRefusals, BackendsOfOtherBuildsAreRefusedWithWhatTheyNeed) {
  const auto built = backend_kinds();
  for (const std::string kind : {"cuda", "cuda-simt"}) {
    if (std::ranges::find(built, kind) != built.end()) continue;
    const std::string needs = fmt::format("got '{0}' ('{0}' is built where CMake finds ", kind);
    EXPECT_THAT(error_of(nested("runtime.backend", kind)),
                AllOf(StartsWith("c/a.yaml:2: runtime.backend: this build has auto, cpu"), HasSubstr(needs)));
    EXPECT_THAT(error_of("", {"runtime.backend=" + kind}),
                AllOf(StartsWith("--set runtime.backend: this build has auto, cpu"), HasSubstr(needs)));
  }
}

TEST_F(ConfigRefusals, AtMostOneConstraintMayBeSet) {
  EXPECT_EQ(error_of("constraint: {regex: a+, choices: [a, b]}"),
            "c/a.yaml:2: constraint.choices: expected at most one constraint, got constraint.regex too (an empty value "
            "unsets one)");
  EXPECT_EQ(
      error_of("constraint: {json: true}", {"constraint.regex=a"}),
      "--set constraint.regex: expected at most one constraint, got constraint.json too (an empty value unsets one)");
  EXPECT_EQ(error_of("constraint: {choices: [a, \"\"]}"),
            "c/a.yaml:2: constraint.choices: expected texts that are not empty, got \"\"");
}

TEST_F(ConfigRefusals, AConstraintNeedsItsFile) {
  EXPECT_THAT(error_of("constraint: {grammar: a.gbnf}"),
              StartsWith("c/a.yaml:2: constraint.grammar: no file a.gbnf, tried "));
  EXPECT_THAT(error_of("", {"constraint.json_schema=a.json"}),
              StartsWith("--set constraint.json_schema: no file a.json, tried "));
}

TEST_F(ConfigRefusals, LogitBiasNamesTheIdOrValueItCannotTake) {
  const std::string place =
      "c/a.yaml:2: sampling.logit_bias: expected map from integer 0..2147483647 to number or -inf";
  EXPECT_EQ(error_of("sampling: {logit_bias: {-1: 5}}"), place + ", got key -1");
  EXPECT_EQ(error_of("sampling: {logit_bias: {7: .inf}}"), place + ", got .inf");
  EXPECT_EQ(error_of("sampling: {logit_bias: [7]}"), place + ", got a list of 1");
}

TEST_F(ConfigRefusals, ALossyRuleNeedsTheKeyThatAllowsIt) {
  EXPECT_EQ(error_of("verify: {rule: typical}"),
            "c/a.yaml:2: verify.rule: typical changes the target's distribution; it needs verify.lossy: true");
  EXPECT_THAT(error_of("verify: {lossy: true}", {"verify.rule=typical", "verify.lossy=false"}),
              StartsWith("--set verify.rule: typical changes"));
  EXPECT_EQ(read("verify: {rule: typical, lossy: true}").verify.rule, "typical");
  for (const std::string rule : {"rejection", "block", "coupled"}) {
    for (const std::string lossy : {"false", "true"}) {
      EXPECT_EQ(read("verify: {rule: " + rule + ", lossy: " + lossy + "}").verify.rule, rule);
    }
  }
}

TEST_F(ConfigRefusals, NeutralValuesOfThoseFeaturesAreAccepted) {
  const Config config = read(R"(
draft: {head_rows: all, head_ranking: , quantize: none, corpus: []}
verify: {rule: rejection, lossy: false}
constraint: {grammar: , json_schema: ~, json: false, regex: null, choices: []}
)");
  EXPECT_EQ(to_yaml(config), to_yaml(read("")));
}

TEST_F(ConfigRefusals, EveryKeyWithAnUnlandedFeatureSaysSoInItsHelp) {
  for (const OptionDoc& doc : config_documentation()) {
    const std::string value = doc.type.starts_with("map")                ? "{1: 1}"
                              : doc.type.starts_with("list")             ? "[1]"
                              : doc.type == "text" || doc.type == "path" ? "target.gguf"
                              : doc.type == "true or false"              ? "true"
                                                                         : "";
    if (value.empty()) continue;
    const bool refused = error_of("", {doc.key + "=" + value}).find("not available") != std::string::npos;
    EXPECT_EQ(refused, doc.help.find("this version") != std::string::npos) << doc.key;
  }
}

TEST_F(ConfigSet, PenaltiesBiasAndLogprobsAreReadAndWritten) {
  const Config config =
      read("sampling: {repetition_penalty: 1.5, presence_penalty: 0.25, frequency_penalty: -0.5, penalty_window: 7}\n",
           {"sampling.logit_bias={9: -inf, 3: 1.5}", "sampling.logprobs=20"});
  EXPECT_EQ(config.sampling.repetition_penalty, 1.5);
  EXPECT_EQ(config.sampling.presence_penalty, 0.25);
  EXPECT_EQ(config.sampling.frequency_penalty, -0.5);
  EXPECT_EQ(config.sampling.penalty_window, 7);
  EXPECT_THAT(config.sampling.logit_bias, ElementsAre(std::pair(9, -HUGE_VAL), std::pair(3, 1.5)));
  EXPECT_EQ(config.logprobs, 20);
  EXPECT_THAT(to_yaml(config), HasSubstr("  repetition_penalty: 1.5\n  presence_penalty: 0.25\n"
                                         "  frequency_penalty: -0.5\n  penalty_window: 7\n"
                                         "  logit_bias: {9: -inf, 3: 1.5}\n  logprobs: 20\n"));
}

TEST_F(ConfigSet, OverridesWinOverTheFile) {
  const Config config = read("draft: {length: 4}\nsampling: {seed: 1}\n",
                             {"draft.length=8", "sampling.seed=random", "stop.strings=[no, yes, 1]",
                              "draft.ngram.min_match=5", "prompt.system=a b", "draft.length=9"});
  EXPECT_EQ(config.draft.length, 9);
  EXPECT_EQ(config.seed, std::nullopt);
  EXPECT_THAT(config.stop.strings, ElementsAre("no", "yes", "1"));
  EXPECT_EQ(config.draft.ngram_min_match, 5);
  EXPECT_EQ(config.prompt.system, "a b");
  Options from_nothing;
  from_nothing.set("target.model=target.gguf");
  EXPECT_EQ(read_config(from_nothing).target.model, model("target.gguf"));
}

TEST_F(ConfigSet, ARefusalLaterOnStillNamesThePlace) {
  const Config config = read("stop:\n  token_ids: [9]\n", {"target.context=99999"});
  EXPECT_EQ(message_of([&] { config.options.refuse("stop.token_ids", "no"); }), "c/a.yaml:3: stop.token_ids: no");
  EXPECT_EQ(message_of([&] { config.options.refuse("target.context", "no"); }), "--set target.context: no");
}

TEST_F(ConfigPaths, ModelsAreFoundFromTheFolderOfTheFile) {
  const test::TempDir folder;
  fs::create_directories(folder.path() + "/cfg");
  fs::create_directories(folder.path() + "/m");
  folder.file("m/x.gguf", "");
  folder.file("cfg/y.gguf", "");
  const std::string file = folder.file("cfg/a.yaml", "target: {model: ../m/x.gguf}\ndraft: {model: y.gguf}\n");
  const std::string root = fs::canonical(folder.path()).string();
  const fs::path before = fs::current_path();
  for (const std::string& from : {std::string("/"), folder.path(), folder.path() + "/m"}) {
    fs::current_path(from);
    for (const std::string& name : {file, fs::relative(file).string()}) {
      const Config config = read_config(Options::from_file(name));
      EXPECT_EQ(config.target.model, root + "/m/x.gguf");
      EXPECT_EQ(config.draft.model, root + "/cfg/y.gguf");
    }
    // A path given on the command line starts where the command runs.
    Options options = Options::from_file(file);
    options.set("target.model=./x.gguf");
    if (from.ends_with("/m")) {
      EXPECT_EQ(read_config(options).target.model, root + "/m/x.gguf");
    } else {
      EXPECT_THAT(message_of([&] { read_config(options); }),
                  StartsWith("--set target.model: no file ./x.gguf, tried " + fs::canonical(from).string()));
    }
  }
  fs::current_path(before);
}

TEST_F(ConfigPaths, TheFolderOfTheFileComesBeforeTheModelFolder) {
  const test::TempDir folder;
  const std::string file = folder.file("a.yaml", "target: {model: target.gguf}\n");
  EXPECT_EQ(read_config(Options::from_file(file)).target.model, model("target.gguf"));
  folder.file("target.gguf", "");
  EXPECT_EQ(read_config(Options::from_file(file)).target.model, fs::canonical(folder.path()).string() + "/target.gguf");
}

TEST_F(ConfigPaths, AMissingModelNamesPlaceKeyAndEveryPathTried) {
  const test::TempDir folder;
  const std::string root = fs::canonical(folder.path()).string();
  const std::string file = folder.file("a.yaml", "target:\n  model: none.gguf\n");
  EXPECT_EQ(message_of([&] { read_config(Options::from_file(file)); }),
            file + ":2: target.model: no file none.gguf, tried " + root + "/none.gguf or " + model("none.gguf"));
  const std::string up = folder.file("b.yaml", "target: {model: target.gguf}\ndraft:\n  model: ../up/none.gguf\n");
  EXPECT_EQ(message_of([&] { read_config(Options::from_file(up)); }),
            up + ":3: draft.model: no file ../up/none.gguf, tried " +
                (fs::path(root).parent_path() / "up/none.gguf").string());
  const std::string itself = folder.file("c.yaml", "target: {model: .}\n");
  EXPECT_THAT(message_of([&] { read_config(Options::from_file(itself)); }), HasSubstr("(a folder)"));
  const std::string absolute = folder.file("d.yaml", "target: {model: /none/none.gguf}\n");
  EXPECT_THAT(message_of([&] { read_config(Options::from_file(absolute)); }),
              HasSubstr("no file /none/none.gguf, tried /none/none.gguf"));
  EXPECT_THAT(error_of("draft: {model: \"target.gguf\\0x\"}"), HasSubstr("draft.model: expected a file name, got one"));
  EXPECT_THAT(error_of("draft: {model: " + std::string(900, 'x') + "}"),
              AllOf(HasSubstr("draft.model: no file xxx"), HasSubstr("too long")));
}

TEST_F(ConfigPaths, LinksKeepTheirNameAndFoldersAreResolved) {
  const test::TempDir folder;
  fs::create_directories(folder.path() + "/store");
  folder.file("store/blob", "");
  fs::create_symlink(folder.path() + "/store/blob", folder.path() + "/named.gguf");
  fs::create_directory_symlink(folder.path() + "/store", folder.path() + "/link");
  const std::string root = fs::canonical(folder.path()).string();
  EXPECT_EQ(find_model("named.gguf", folder.path(), ErrorKind::usage), root + "/named.gguf");
  // `link/..` is the folder above the link's target, as the system sees it.
  EXPECT_EQ(find_model("link/../store/blob", folder.path(), ErrorKind::usage), root + "/store/blob");
}

TEST_F(ConfigPaths, FindModelUsesTheKindOfItsCaller) {
  try {
    find_model("none.gguf", "/", ErrorKind::usage);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_EQ(std::string(error.what()), "no file none.gguf, tried /none.gguf or " + model("none.gguf"));
  }
}

TEST(ConfigModelFolder, ComesFromTheVariableElseTheHomeFolder) {
  const ScopedVariable home("HOME", "/home/someone");
  {
    const ScopedVariable models("TANDEM_MODELS", "/somewhere");
    EXPECT_EQ(model_folder(), "/somewhere");
  }
  const ScopedVariable models("TANDEM_MODELS", "");
  EXPECT_EQ(model_folder(), "/home/someone/.cache/tandem/models");
}

// A config with random valid settings, some left unset.
Config random_config(std::mt19937& random, const std::string& target, const std::string& draft) {
  const auto below = [&](std::uint64_t limit) { return random() % limit; };
  const auto real = [&](double low, double high) {
    const double unit = static_cast<double>(random()) / 4294967296.0;
    return below(4) == 0 ? low : low + (high - low) * unit * (below(2) == 0 ? 1 : 1e-9);
  };
  const auto maybe = [&](int low, int high) {
    return below(2) == 0 ? std::nullopt : std::optional(low + static_cast<int>(below(high - low + 1)));
  };
  const std::vector<std::string> texts = {
      "no", "yes", "1",     "null", "~",    "a: b", "# x",        "\n\n",         " pad ", "\"",   "'",    "\\n",
      "é😀", "\t",  "- x",   "&a",   "*b",   "!c",   "{",          "<<: ",         "010",   "1e-3", "\x01", "\x7f",
      "%d", "...", "---\n", "|",    "true", "\r\n", "x\xC2\x85y", "\xE2\x80\xA8", "`",     "@"};
  const auto text = [&] {
    std::string joined;
    for (std::uint64_t n = below(4) + 1; n > 0; --n) joined += texts[below(texts.size())];
    return joined;
  };
  constexpr KvType kKvTypes[] = {KvType::f32, KvType::f16, KvType::q8_0};
  Config config;
  config.target = {target, maybe(16, 1 << 30)};
  config.draft.kind = std::vector<std::string>{"none", "model", "ngram", "recycle", "hybrid"}[below(5)];
  config.draft.model = config.draft.uses_model() || below(2) == 0 ? draft : "";
  config.draft.context = maybe(16, 1 << 30);
  if (below(4) != 0) config.draft.length = static_cast<int>(below(64));
  const int length = config.draft.length.value_or(0);
  config.draft.max_nodes = length + 1 + static_cast<int>(below(64 - static_cast<std::uint64_t>(length)));
  config.draft.min_probability = real(0, 1);
  if (below(2) == 0) config.draft.kv_cache = kKvTypes[below(3)];
  config.draft.head_rows = maybe(1, 1 << 30);
  if (config.draft.head_rows && below(2) == 0) config.draft.head_ranking = draft;
  config.draft.quantize = std::vector<std::string>{"none", "q4_0", "q8_0"}[below(3)];
  config.draft.retokenize = below(2) == 0;
  if (below(3) == 0) config.draft.corpus = {draft, fs::path(draft).parent_path().string()};
  config.draft.ngram_min_match = 1 + static_cast<int>(below(100));
  config.draft.ngram_max_match = config.draft.ngram_min_match + static_cast<int>(below(100));
  config.sampling = {real(0, 1e6), static_cast<int>(below(100)), real(0, 1), real(0, 1)};
  if (below(2) == 0) config.seed = (static_cast<std::uint64_t>(random()) << 32) | random();
  config.stop.max_tokens = 1 + static_cast<int>(below(1 << 30));
  for (std::uint64_t n = below(4); n > 0; --n) config.stop.strings.push_back(text());
  for (std::uint64_t n = below(4); n > 0; --n) config.stop.token_ids.push_back(static_cast<TokenId>(below(1 << 30)));
  if (below(2) == 0) config.stop.time_limit_seconds = real(1e-300, 1e9);
  if (below(2) == 0) config.prompt.chat = below(2) == 0;
  if (below(2) == 0) config.prompt.system = text();
  config.runtime.backend = below(2) == 0 ? "auto" : "cpu";
  const char* rules[] = {"rejection", "block", "coupled", "typical"};
  config.verify.rule = rules[below(4)];
  config.verify.lossy = config.verify.rule == "typical" || below(2) == 0;
  config.runtime.threads = static_cast<int>(below(257));
  config.runtime.kv_cache = kKvTypes[below(3)];
  config.runtime.prefill_chunk = 1 + static_cast<int>(below(8192));
  config.runtime.context_full = below(2) == 0 ? "stop" : "drop_oldest_turns";
  return config;
}

void expect_same_settings(const Config& a, const Config& b) {
  EXPECT_EQ(a.target.model, b.target.model);
  EXPECT_EQ(a.target.context, b.target.context);
  EXPECT_EQ(a.draft.kind, b.draft.kind);
  EXPECT_EQ(a.draft.model, b.draft.model);
  EXPECT_EQ(a.draft.context, b.draft.context);
  EXPECT_EQ(a.draft.length, b.draft.length);
  EXPECT_EQ(a.draft.max_nodes, b.draft.max_nodes);
  EXPECT_EQ(a.draft.min_probability, b.draft.min_probability);
  EXPECT_EQ(a.draft.kv_cache, b.draft.kv_cache);
  EXPECT_EQ(a.draft.head_rows, b.draft.head_rows);
  EXPECT_EQ(a.draft.head_ranking, b.draft.head_ranking);
  EXPECT_EQ(a.draft.quantize, b.draft.quantize);
  EXPECT_EQ(a.draft.ngram_min_match, b.draft.ngram_min_match);
  EXPECT_EQ(a.draft.ngram_max_match, b.draft.ngram_max_match);
  EXPECT_EQ(a.verify.rule, b.verify.rule);
  EXPECT_EQ(a.verify.lossy, b.verify.lossy);
  EXPECT_EQ(a.sampling.temperature, b.sampling.temperature);
  EXPECT_EQ(a.sampling.top_k, b.sampling.top_k);
  EXPECT_EQ(a.sampling.top_p, b.sampling.top_p);
  EXPECT_EQ(a.sampling.min_p, b.sampling.min_p);
  EXPECT_EQ(a.seed, b.seed);
  EXPECT_EQ(a.stop.max_tokens, b.stop.max_tokens);
  EXPECT_EQ(a.stop.strings, b.stop.strings);
  EXPECT_EQ(a.stop.token_ids, b.stop.token_ids);
  EXPECT_EQ(a.stop.time_limit_seconds, b.stop.time_limit_seconds);
  EXPECT_EQ(a.prompt.chat, b.prompt.chat);
  EXPECT_EQ(a.prompt.system, b.prompt.system);
  EXPECT_EQ(a.runtime.backend, b.runtime.backend);
  EXPECT_EQ(a.runtime.threads, b.runtime.threads);
  EXPECT_EQ(a.runtime.kv_cache, b.runtime.kv_cache);
  EXPECT_EQ(a.runtime.prefill_chunk, b.runtime.prefill_chunk);
  EXPECT_EQ(a.runtime.context_full, b.runtime.context_full);
}

TEST_F(ConfigYaml, RandomSettingsReadBackUnchanged) {
  std::mt19937 random(3);
  // A folder and file whose names need quoting.
  const test::TempDir odd;
  fs::create_directories(odd.path() + "/a: b # \"c\" \\n");
  odd.file("a: b # \"c\" \\n/it's {é}.gguf", "");
  const std::string draft = fs::canonical(odd.path()).string() + "/a: b # \"c\" \\n/it's {é}.gguf";
  for (int round = 0; round < 1000; ++round) {
    const Config config = random_config(random, model("target.gguf"), draft);
    const std::string yaml = to_yaml(config);
    const Config again = read_config(Options::from_text(yaml, "effective.yaml"));
    expect_same_settings(config, again);
    ASSERT_EQ(to_yaml(again), yaml);
    if (HasFailure()) FAIL() << yaml;
  }
}

TEST_F(ConfigYaml, HasAFixedOrderAndMarksUnsetKeys) {
  const std::string yaml = to_yaml(read(""));
  EXPECT_EQ(
      yaml,
      "target:\n  model: \"" + model("target.gguf") +
          "\"\n  context: null\n"
          "draft:\n  kind: ngram\n  model: null\n  context: null\n  length: auto\n  max_nodes: 16\n"
          "  min_probability: 0\n  kv_cache: null\n"
          "  head_rows: all\n  head_ranking: null\n  quantize: none\n  retokenize: false\n  corpus: []\n  ngram:\n    "
          "min_match: 2\n    max_match: 64\n"
          "verify:\n  rule: rejection\n  lossy: false\n"
          "sampling:\n  temperature: 0.7\n  top_k: 40\n  top_p: 0.95\n  min_p: 0\n  seed: random\n"
          "  repetition_penalty: 1\n  presence_penalty: 0\n  frequency_penalty: 0\n  penalty_window: 64\n"
          "  logit_bias: {}\n  logprobs: 0\n"
          "stop:\n  max_tokens: 512\n  strings: []\n  token_ids: []\n  time_limit_seconds: null\n"
          "constraint:\n  grammar: null\n  json_schema: null\n  json: false\n  regex: null\n  choices: []\n"
          "prompt:\n  chat: null\n  system: null\n"
          "runtime:\n  backend: auto\n  threads: auto\n  kv_cache: f16\n  prefill_chunk: 512\n"
          "  context_full: stop\n");
}

TEST(ConfigDocumentation, CoversTheTableInItsOrder) {
  std::vector<std::string> keys;
  for (const OptionDoc& doc : config_documentation()) {
    keys.push_back(doc.key);
    EXPECT_FALSE(doc.type.empty()) << doc.key;
    EXPECT_FALSE(doc.fallback.empty()) << doc.key;
    EXPECT_TRUE(doc.help.ends_with('.')) << doc.key;
  }
  EXPECT_THAT(
      keys,
      ElementsAre("target.model", "target.context", "draft.kind", "draft.model", "draft.context", "draft.length",
                  "draft.max_nodes", "draft.min_probability", "draft.kv_cache", "draft.head_rows", "draft.head_ranking",
                  "draft.quantize", "draft.retokenize", "draft.corpus", "draft.ngram.min_match",
                  "draft.ngram.max_match", "verify.rule", "verify.lossy", "sampling.temperature", "sampling.top_k",
                  "sampling.top_p", "sampling.min_p", "sampling.seed", "sampling.repetition_penalty",
                  "sampling.presence_penalty", "sampling.frequency_penalty", "sampling.penalty_window",
                  "sampling.logit_bias", "sampling.logprobs", "stop.max_tokens", "stop.strings", "stop.token_ids",
                  "stop.time_limit_seconds", "constraint.grammar", "constraint.json_schema", "constraint.json",
                  "constraint.regex", "constraint.choices", "prompt.chat", "prompt.system", "runtime.backend",
                  "runtime.threads", "runtime.kv_cache", "runtime.prefill_chunk", "runtime.context_full"));
}

Config read_file(const std::string& name) {
  return read_config(Options::from_file(std::string(TANDEM_SOURCE_DIR) + "/configs/" + name + ".yaml"));
}

TEST_F(ConfigFiles, EveryFileOfTheFolderLoads) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(std::string(TANDEM_SOURCE_DIR) + "/configs")) {
    if (entry.path().extension() != ".yaml") continue;
    names.insert(entry.path().stem().string());
    EXPECT_NO_THROW(read_config(Options::from_file(entry.path().string()))) << entry.path();
  }
  for (const char* name :
       {"quickstart", "plain", "model-draft", "ngram", "own-files", "reproducible", "small", "retokenize"}) {
    EXPECT_TRUE(names.contains(name));
  }
}

TEST_F(ConfigFiles, SayWhatTheirNamesPromise) {
  const std::string qwen = model("qwen2.5-coder-1.5b-instruct-q4_k_m.gguf");
  const std::string qwen_draft = model("qwen2.5-coder-0.5b-instruct-q4_k_m.gguf");
  const DraftConfig own = read_file("own-files").draft;
  EXPECT_EQ(own.kind, "ngram");
  EXPECT_THAT(own.corpus, ElementsAre(::testing::EndsWith("/src"), ::testing::EndsWith("/tests")));
  const Config quickstart = read_file("quickstart");
  EXPECT_EQ(quickstart.target.model, qwen);
  EXPECT_EQ(quickstart.draft.model, qwen_draft);
  EXPECT_EQ(quickstart.draft.kind, "hybrid");
  EXPECT_EQ(quickstart.draft.length, std::nullopt);
  EXPECT_EQ(quickstart.sampling.temperature, 0);
  EXPECT_EQ(quickstart.stop.max_tokens, 256);
  EXPECT_EQ(read_file("plain").draft.kind, "none");
  EXPECT_EQ(read_file("plain").target.model, qwen);
  EXPECT_EQ(read_file("reproducible").verify.rule, "coupled");
  EXPECT_TRUE(read_file("reproducible").seed.has_value());
  EXPECT_GT(read_file("reproducible").sampling.temperature, 0);
  EXPECT_EQ(read_file("model-draft").draft.kind, "model");
  EXPECT_GT(read_file("model-draft").sampling.temperature, 0);
  EXPECT_EQ(read_file("ngram").draft.kind, "ngram");
  EXPECT_TRUE(read_file("retokenize").draft.retokenize);
  EXPECT_EQ(read_file("retokenize").target.model, qwen);
  EXPECT_EQ(read_file("retokenize").draft.model, model("smollm2-135m-instruct-q4_1.gguf"));
  EXPECT_EQ(read_file("small").draft.kind, "ngram");
  EXPECT_EQ(read_file("small").target.model, model("smollm2-135m-instruct-q4_1.gguf"));
}

}  // namespace
}  // namespace tandem
