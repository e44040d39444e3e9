// The effective settings of a run, read strictly from one YAML file and `--set` overrides (design.md section 9).
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/error.h"
#include "src/base/options.h"
#include "src/base/tensor.h"
#include "src/sample/sampler.h"

namespace tandem {

struct TargetConfig {
  std::string model;           // resolved path
  std::optional<int> context;  // unset: min(model's limit, 4096)
};

struct DraftConfig {
  std::string kind = "ngram";  // none, model, ngram, recycle, hybrid
  std::string model;           // resolved path; empty = unset
  std::optional<int> context;  // unset: as the target
  std::optional<int> length;   // 0..63; unset: auto
  int max_nodes = 16;          // 1..64, node 0 included; unset: 16, of a fixed length its chain
  double min_probability = 0;
  std::optional<KvType> kv_cache;   // unset: as runtime.kv_cache
  std::optional<int> head_rows;     // unset: all
  std::string head_ranking;         // resolved path; empty = by id
  std::string quantize = "none";    // none, q4_0, q8_0
  std::vector<std::string> corpus;  // resolved files and folders
  bool retokenize = false;          // the draft may have another vocabulary
  int ngram_min_match = 2, ngram_max_match = 64;

  bool uses_model() const { return kind == "model" || (kind == "hybrid" && !model.empty()); }
  bool uses_ngram() const { return kind == "ngram" || kind == "hybrid"; }
};

struct VerifyConfig {
  std::string rule = "rejection";  // rejection, block, coupled; typical only with lossy
  bool lossy = false;
};

struct StopConfig {
  int max_tokens = 512;
  std::vector<std::string> strings;
  std::vector<TokenId> token_ids;
  std::optional<double> time_limit_seconds;
};

// At most one of them is set.
struct ConstraintConfig {
  std::string grammar, json_schema;  // resolved paths; empty = unset
  bool json = false;
  std::optional<std::string> regex;
  std::vector<std::string> choices;

  // Which key is set: grammar, json_schema, json, regex or choices; empty when none is.
  std::string_view kind() const;
};

struct PromptConfig {
  std::optional<bool> chat;  // unset: true if the model has a template
  std::string system;        // empty = none
};

struct RuntimeConfig {
  std::string backend = "auto";
  int threads = 0;  // 0 = auto
  KvType kv_cache = KvType::f16;
  int prefill_chunk = 512;
  std::string context_full = "stop";  // stop, drop_oldest_turns
};

struct Config {
  std::string source;  // name of the file, for messages and reports
  TargetConfig target;
  DraftConfig draft;
  VerifyConfig verify;
  SamplingOptions sampling;
  std::optional<std::uint64_t> seed;  // unset = random
  int logprobs = 0;                   // best alternatives to report with each token; 0 reports no log-probabilities
  StopConfig stop;
  ConstraintConfig constraint;
  PromptConfig prompt;
  RuntimeConfig runtime;
  Options options;  // kept so that checks that need the model can name a key's place
};

// Reads every key and finds the model files; throws Error(config) for anything unknown, malformed, out of range, or
// whose feature has not landed. Limits that need a model (context, token ids) are checked later through `options`.
Config read_config(Options options);

// Every key with type, range, default and meaning, in the order of design.md section 9: `tandem config --help`.
std::vector<OptionDoc> config_documentation();

// Where models live: $TANDEM_MODELS, else ~/.cache/tandem/models.
std::string model_folder();

// The path rule of `target.model`: relative to `base_folder`; a bare file name is also looked up in the model folder.
// Returns the absolute path of a file that exists, or throws Error(kind) naming the places tried.
std::string find_model(const std::string& value, const std::string& base_folder, ErrorKind kind);

// The absolute path of a file that exists, `value` relative to `base_folder`. Error(config) naming the place tried.
std::string find_file(const std::string& value, const std::string& base_folder);

// An entry of draft.corpus as an absolute path without links and dots; a relative one starts from `base_folder`. Throws
// Error(config) when there is no such file or folder.
std::string find_corpus(const std::string& value, const std::string& base_folder);

// Effective settings as YAML text, in a fixed order, that read_config takes back unchanged; null marks an unset key.
std::string to_yaml(const Config& config);

}  // namespace tandem
