// A model file brought up: directory, tokenizer, weights.
#pragma once
#include <memory>
#include <string>

#include "src/model/transformer.h"
#include "src/sample/sampler.h"
#include "src/text/tokenizer.h"

namespace tandem {

// The tokenizer's data from GGUF metadata. Throws Error(model) for missing or inconsistent keys (token ids out of
// range, list lengths that differ).
Vocabulary read_vocabulary(const GgufFile& file);

struct ModelFile {
  std::unique_ptr<GgufFile> file;
  ModelSpec spec;
  std::unique_ptr<Tokenizer> tokenizer;
  std::string template_text;  // tokenizer.chat_template; empty = none

  std::string path() const { return file->path(); }
};

// Opens and checks a file without loading weights.
ModelFile open_model(const std::string& path);

// Ids that may be generated: in the vocabulary, not marked unused, and with a row in the embedding. With `other`, in
// both.
TokenMask usable_tokens(const ModelFile& model, const ModelFile* other = nullptr);

}  // namespace tandem
