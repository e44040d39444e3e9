// The vocabulary of a real model file, for tests of the text layer.
#pragma once
#include <string>

#include "src/model/gguf.h"
#include "src/text/vocabulary.h"

namespace tandem {

inline Vocabulary golden_vocabulary(const GgufFile& file) {
  Vocabulary vocabulary;
  vocabulary.model = file.text("tokenizer.ggml.model");
  vocabulary.pre = file.text("tokenizer.ggml.pre");
  vocabulary.tokens = file.texts("tokenizer.ggml.tokens");
  vocabulary.merges = file.texts("tokenizer.ggml.merges");
  for (const std::int64_t type : file.integers("tokenizer.ggml.token_type")) {
    vocabulary.types.push_back(static_cast<TokenType>(type));
  }
  vocabulary.add_bos = file.boolean_or("tokenizer.ggml.add_bos_token", false);
  const auto id = [&](std::string_view key) -> std::optional<TokenId> {
    if (!file.has(key)) return std::nullopt;
    return static_cast<TokenId>(file.integer(key, 0, vocabulary.size() - 1));
  };
  vocabulary.bos = id("tokenizer.ggml.bos_token_id");
  vocabulary.eos = id("tokenizer.ggml.eos_token_id");
  vocabulary.eot = id("tokenizer.ggml.eot_token_id");
  return vocabulary;
}

}  // namespace tandem
