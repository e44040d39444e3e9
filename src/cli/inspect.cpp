// tandem inspect: what a model file holds.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "src/cli/commands.h"
#include "src/cli/model_argument.h"
#include "src/cli/terminal.h"
#include "src/engine/model_files.h"
#include "src/text/chat_template.h"

namespace tandem {
namespace {

struct Arguments {
  std::string model;
  bool tensors = false, json = false;
};

struct Part {
  std::uint64_t parameters = 0, bytes = 0;
  int tensors = 0;
};

// "embedding", "output head", "attention", "feed-forward", "norms and biases", "rope factors" or "other".
std::string part_of(const std::string& tensor) {
  if (tensor.starts_with("token_embd")) return "embedding";
  if (tensor == "output.weight") return "output head";
  if (tensor.find("norm") != std::string::npos || tensor.ends_with(".bias")) return "norms and biases";
  if (tensor.find(".attn_") != std::string::npos) return "attention";
  if (tensor.find(".ffn_") != std::string::npos) return "feed-forward";
  if (tensor.starts_with("rope_")) return "rope factors";
  return "other";
}

// What marks the template's turns and its hash, or why it cannot be read.
std::string template_of(const ModelFile& model) {
  if (model.template_text.empty()) return "none";
  try {
    return std::string(make_chat_template(model.template_text, model.file->name())->name());
  } catch (const Error& error) {
    return error.what();
  }
}

int sliding_layers(const ModelSpec& s) { return static_cast<int>(std::ranges::count(s.sliding, true)); }

// Keys and values of one token in so many layers; null where the type does not fit the heads.
nlohmann::ordered_json kv_bytes_per_token(const ModelSpec& s, int layers, KvType type) {
  if (!stores_heads(type, s.head_dim)) return nullptr;
  return std::size_t{2} * static_cast<std::size_t>(layers) * s.kv_heads * slot_bytes_of(type, s.head_dim);
}

// Layers with a sliding window, whose cache stops to grow once the window and the rows of a pass are full.
void describe_sliding(const ModelSpec& s, nlohmann::ordered_json& out) {
  const int layers = sliding_layers(s);
  if (layers == 0) return;
  out["sliding_layers"] = layers;
  out["sliding_window"] = s.window;
  if (s.sliding_rope_base > 0) out["sliding_rope_base"] = s.sliding_rope_base;
  out["sliding_kv_bytes_per_token_f16"] = kv_bytes_per_token(s, layers, KvType::f16);
  out["sliding_kv_bytes_per_token_q8_0"] = kv_bytes_per_token(s, layers, KvType::q8_0);
}

// What is done about positions beyond those of the training; `context` counts it in already.
void describe_scaled_rope(const ModelSpec& s, nlohmann::ordered_json& out) {
  if (s.rope_divisors.empty() && s.rope_magnitude == 1) return;
  out["rope_original_context"] = s.rope_original_context;
  out["rope_magnitude"] = s.rope_magnitude;
  out["rope_long_factors"] = !s.rope_long_divisors.empty();
}

nlohmann::ordered_json describe(const ModelFile& model) {
  std::map<std::string, Part> parts, formats;
  Part all;
  for (const GgufTensor& tensor : model.file->tensors()) {
    const std::uint64_t values = tensor.columns() * tensor.rows();
    for (Part* part : {&parts[part_of(tensor.name)], &formats[std::string(format_info(tensor.format).name)], &all}) {
      part->parameters += values;
      part->bytes += tensor.data.size();
      ++part->tensors;
    }
  }
  const auto json = [](const Part& p) {
    return nlohmann::ordered_json{{"tensors", p.tensors}, {"parameters", p.parameters}, {"bytes", p.bytes}};
  };
  const ModelSpec& s = model.spec;
  const Vocabulary& v = model.tokenizer->vocabulary();
  const int growing = s.layers - sliding_layers(s);
  nlohmann::ordered_json out = {{"path", model.path()},
                                {"name", model.file->text_or("general.name", "")},
                                {"architecture", s.architecture},
                                {"file_bytes", model.file->file_bytes()},
                                {"gguf_version", model.file->version()},
                                {"parameters", all.parameters},
                                {"layers", s.layers},
                                {"width", s.width},
                                {"heads", s.heads},
                                {"kv_heads", s.kv_heads},
                                {"head_dim", s.head_dim},
                                {"ffn", s.ffn},
                                {"vocabulary_size", v.size()},
                                {"embedding_rows", s.vocab},
                                {"context", s.context},
                                {"rope_base", s.rope_base},
                                {"kv_bytes_per_token_f16", kv_bytes_per_token(s, growing, KvType::f16)},
                                {"kv_bytes_per_token_q8_0", kv_bytes_per_token(s, growing, KvType::q8_0)}};
  describe_scaled_rope(s, out);
  describe_sliding(s, out);
  out.update({{"tokenizer", kind_of(v)},
              {"adds_bos", v.add_bos},
              {"end_ids", end_ids(v)},
              {"chat_template", template_of(model)}});
  for (const auto& [name, part] : parts) out["parts"][name] = json(part);
  for (const auto& [name, part] : formats) out["formats"][name] = json(part);
  return out;
}

nlohmann::ordered_json tensors_json(const ModelFile& model) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const GgufTensor& t : model.file->tensors()) {
    list.push_back({{"name", t.name},
                    {"format", format_info(t.format).name},
                    {"rows", t.rows()},
                    {"columns", t.columns()},
                    {"bytes", t.data.size()}});
  }
  return list;
}

std::string table(const nlohmann::ordered_json& d, const ModelFile& model, bool tensors) {
  std::string out;
  for (const auto& [key, value] : d.items()) {
    if (!value.is_object())
      out += fmt::format("{:<32}{}\n", key, value.is_string() ? value.get<std::string>() : value.dump());
  }
  for (const char* group : {"parts", "formats"}) {
    out += fmt::format("\n{:<20}{:>8}{:>16}{:>14}\n", group, "tensors", "parameters", "MB");
    for (const auto& [name, part] : d[group].items()) {
      out += fmt::format("{:<20}{:>8}{:>16}{:>14.1f}\n", name, part["tensors"].get<int>(),
                         part["parameters"].get<std::uint64_t>(), part["bytes"].get<double>() / 1e6);
    }
  }
  if (tensors) {
    out += "\n";
    for (const GgufTensor& t : model.file->tensors()) {
      out += fmt::format("{:<36}{:>6}  [{}, {}]\n", t.name, format_info(t.format).name, t.rows(), t.columns());
    }
  }
  return out;
}

int run(const Arguments& a) {
  const ModelFile model = open_model(model_argument(a.model));
  nlohmann::ordered_json description = describe(model);
  if (!a.json) return write_stdout(table(description, model, a.tensors)) ? 0 : 1;
  if (a.tensors) description["tensors"] = tensors_json(model);
  return write_json(description) ? 0 : 1;
}

}  // namespace

void add_inspect(CLI::App& program, Command& chosen) {
  auto a = std::make_shared<Arguments>();
  CLI::App* command =
      program.add_subcommand("inspect", "Summary of a model: sizes, parameters by part, cache bytes a token");
  command->add_option("--model", a->model, "GGUF file, or its bare name in the model folder")->required();
  command->add_flag("--tensors", a->tensors, "List every tensor too");
  command->add_flag("--json", a->json, "Print JSON");
  command->footer(
      "What every figure means: the section \"What the figures mean\" of README.md.\n"
      "Example: tandem inspect --model smollm2-135m-instruct-q4_1.gguf");
  command->callback([a, &chosen] { chosen = [a] { return run(*a); }; });
}

}  // namespace tandem
