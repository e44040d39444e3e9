#include "src/engine/model_files.h"

#include <algorithm>

#include "src/arch/registry.h"
#include "src/base/error.h"

namespace tandem {
namespace {

std::optional<TokenId> read_id(const GgufFile& file, const std::string& key, int size) {
  if (!file.has(key)) return std::nullopt;
  return static_cast<TokenId>(file.integer(key, 0, size - 1));
}

std::vector<TokenType> read_types(const GgufFile& file, std::size_t size) {
  const std::string key = "tokenizer.ggml.token_type";
  if (!file.has(key)) return std::vector<TokenType>(size, TokenType::normal);
  const std::vector<std::int64_t> raw = file.integers(key);
  if (raw.size() != size) {
    fail(ErrorKind::model, "{}: {}: expected {} entries, one a token, got {}", file.name(), key, size, raw.size());
  }
  std::vector<TokenType> types;
  types.reserve(size);
  for (std::size_t i = 0; i < size; ++i) {
    if (raw[i] < 1 || raw[i] > 6)
      fail(ErrorKind::model, "{}: {}[{}]: expected 1..6, got {}", file.name(), key, i, raw[i]);
    types.push_back(static_cast<TokenType>(raw[i]));
  }
  return types;
}

}  // namespace

Vocabulary read_vocabulary(const GgufFile& file) {
  Vocabulary v;
  v.model = file.text("tokenizer.ggml.model");
  v.pre = file.text_or("tokenizer.ggml.pre", "");
  v.tokens = file.texts("tokenizer.ggml.tokens");
  if (v.tokens.empty())
    fail(ErrorKind::model, "{}: tokenizer.ggml.tokens: expected at least 1 entry, got 0", file.name());
  v.types = read_types(file, v.tokens.size());
  if (file.has("tokenizer.ggml.merges")) v.merges = file.texts("tokenizer.ggml.merges");
  v.add_bos = file.boolean_or("tokenizer.ggml.add_bos_token", false);
  v.bos = read_id(file, "tokenizer.ggml.bos_token_id", v.size());
  v.eos = read_id(file, "tokenizer.ggml.eos_token_id", v.size());
  v.eot = read_id(file, "tokenizer.ggml.eot_token_id", v.size());
  return v;
}

ModelFile open_model(const std::string& path) {
  ModelFile model;
  model.file = GgufFile::open(path);
  model.spec = read_model_spec(*model.file);
  model.tokenizer = make_tokenizer(read_vocabulary(*model.file), model.file->name());
  model.template_text = model.file->text_or("tokenizer.chat_template", "");
  const int tokens = model.tokenizer->vocabulary().size();
  if (tokens > model.spec.vocab) {
    fail(ErrorKind::model, "{}: tokenizer.ggml.tokens: expected at most {} entries, one an embedding row, got {}",
         model.file->name(), model.spec.vocab, tokens);
  }
  return model;
}

TokenMask usable_tokens(const ModelFile& model, const ModelFile* other) {
  const Vocabulary& vocabulary = model.tokenizer->vocabulary();
  std::vector<bool> usable(vocabulary.tokens.size());
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    usable[id] = vocabulary.usable(id) && (other == nullptr || other->tokenizer->vocabulary().usable(id));
  }
  return TokenMask(std::move(usable));
}

}  // namespace tandem
