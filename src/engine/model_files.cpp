#include "src/engine/model_files.h"

#include "src/arch/registry.h"
#include "src/base/error.h"

namespace tandem {
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
