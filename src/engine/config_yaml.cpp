// The effective settings as YAML.
#include <fmt/ranges.h>

#include "src/engine/config.h"

namespace tandem {
namespace {

// YAML double-quoted text.
std::string yaml_text(std::string_view text) {
  std::string yaml = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F) {
      yaml += c == '\n' ? "\\n" : c == '\t' ? "\\t" : fmt::format("\\x{:02x}", byte);
    } else {
      if (c == '"' || c == '\\') yaml += '\\';
      yaml += c;
    }
  }
  return yaml + '"';
}

std::string yaml_list(const std::vector<std::string>& texts) {
  std::string list;
  for (const std::string& text : texts) list += (list.empty() ? "" : ", ") + yaml_text(text);
  return list;
}

template <typename T>
std::string or_null(const std::optional<T>& value) {
  return value ? fmt::to_string(*value) : "null";
}

std::string text_or_null(const std::string& text) { return text.empty() ? "null" : yaml_text(text); }

std::string draft_yaml(const DraftConfig& draft) {
  std::string yaml = "draft:\n";
  yaml += fmt::format("  kind: {}\n  model: {}\n  context: {}\n", draft.kind, text_or_null(draft.model),
                      or_null(draft.context));
  yaml += fmt::format("  length: {}\n  max_nodes: {}\n  min_probability: {}\n",
                      draft.length ? fmt::to_string(*draft.length) : "auto", draft.max_nodes, draft.min_probability);
  yaml += fmt::format("  kv_cache: {}\n", draft.kv_cache ? name_of(*draft.kv_cache) : "null");
  yaml += fmt::format("  head_rows: {}\n  head_ranking: {}\n  quantize: {}\n",
                      draft.head_rows ? fmt::to_string(*draft.head_rows) : "all", text_or_null(draft.head_ranking),
                      draft.quantize);
  yaml += fmt::format("  retokenize: {}\n", draft.retokenize);
  yaml += fmt::format("  corpus: [{}]\n", yaml_list(draft.corpus));
  yaml += fmt::format("  ngram:\n    min_match: {}\n    max_match: {}\n", draft.ngram_min_match, draft.ngram_max_match);
  return yaml;
}

std::string sampling_yaml(const Config& config) {
  const SamplingOptions& sampling = config.sampling;
  std::string yaml = fmt::format("sampling:\n  temperature: {}\n  top_k: {}\n  top_p: {}\n  min_p: {}\n  seed: {}\n",
                                 sampling.temperature, sampling.top_k, sampling.top_p, sampling.min_p,
                                 config.seed ? fmt::to_string(*config.seed) : "random");
  yaml += fmt::format("  repetition_penalty: {}\n  presence_penalty: {}\n  frequency_penalty: {}\n",
                      sampling.repetition_penalty, sampling.presence_penalty, sampling.frequency_penalty);
  std::string biases;
  for (const auto& [id, bias] : sampling.logit_bias) {
    biases += fmt::format("{}{}: {}", biases.empty() ? "" : ", ", id, bias);
  }
  return yaml + fmt::format("  penalty_window: {}\n  logit_bias: {{{}}}\n  logprobs: {}\n", sampling.penalty_window,
                            biases, config.logprobs);
}

std::string stop_yaml(const StopConfig& stop) {
  return fmt::format("stop:\n  max_tokens: {}\n  strings: [{}]\n  token_ids: [{}]\n  time_limit_seconds: {}\n",
                     stop.max_tokens, yaml_list(stop.strings), fmt::join(stop.token_ids, ", "),
                     or_null(stop.time_limit_seconds));
}

std::string constraint_yaml(const ConstraintConfig& constraint) {
  return fmt::format("constraint:\n  grammar: {}\n  json_schema: {}\n  json: {}\n  regex: {}\n  choices: [{}]\n",
                     text_or_null(constraint.grammar), text_or_null(constraint.json_schema), constraint.json,
                     constraint.regex ? yaml_text(*constraint.regex) : "null", yaml_list(constraint.choices));
}

}  // namespace

std::string to_yaml(const Config& config) {
  std::string yaml = fmt::format("target:\n  model: {}\n  context: {}\n", text_or_null(config.target.model),
                                 or_null(config.target.context));
  yaml += draft_yaml(config.draft);
  yaml += fmt::format("verify:\n  rule: {}\n  lossy: {}\n", config.verify.rule, config.verify.lossy);
  yaml += sampling_yaml(config);
  yaml += stop_yaml(config.stop);
  yaml += constraint_yaml(config.constraint);
  yaml += fmt::format("prompt:\n  chat: {}\n  system: {}\n", or_null(config.prompt.chat),
                      text_or_null(config.prompt.system));
  yaml += fmt::format(
      "runtime:\n  backend: {}\n  threads: {}\n  kv_cache: {}\n  prefill_chunk: {}\n"
      "  context_full: {}\n",
      config.runtime.backend, config.runtime.threads == 0 ? "auto" : fmt::to_string(config.runtime.threads),
      name_of(config.runtime.kv_cache), config.runtime.prefill_chunk, config.runtime.context_full);
  return yaml;
}

}  // namespace tandem
