// A model file brought up: directory, tokenizer, weights.
#pragma once
#include <memory>
#include <string>

#include "src/model/transformer.h"
#include "src/sample/sampler.h"
#include "src/text/tokenizer.h"

namespace tandem {

// The tokenizer's data from GGUF metadata. What a file may leave out: pre (then none, which byte-level BPE does not
// know), token_type (special ids are control tokens, <0x00>.. bytes), the special ids (SentencePiece: <unk> at 0, <s>
// at 1, </s> at 2; else none), add_bos_token (true for SentencePiece and the kind of Llama 3 where there is a BOS),
// add_space_prefix (true), remove_extra_whitespaces (false). Throws Error(model) for other missing keys (tokens;
// scores of SentencePiece, merges of byte-level BPE) and inconsistent ones (token ids out of range, list lengths that
// differ, a precompiled_charsmap, which would rewrite text). add_eos_token has no say: a prompt is to be gone on with.
Vocabulary read_vocabulary(const GgufFile& file);

// The tokenizer of a GGUF file, or of a `tokenizer.model` file of SentencePiece. Errors as make_tokenizer() and the
// readers of both formats.
std::unique_ptr<Tokenizer> open_tokenizer(const std::string& path);

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
