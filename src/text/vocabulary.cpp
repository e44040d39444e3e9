#include "src/text/vocabulary.h"

#include "src/base/error.h"

namespace tandem {
namespace {

void check_id(std::string_view where, std::string_view key, const std::optional<TokenId>& id, int size) {
  if (id && (*id < 0 || *id >= size)) {
    fail(ErrorKind::model, "{}: tokenizer.ggml.{}: expected an id below {}, got {}", where, key, size, *id);
  }
}

}  // namespace

std::string kind_of(const Vocabulary& vocabulary) {
  return vocabulary.pre.empty() ? vocabulary.model : vocabulary.model + "/" + vocabulary.pre;
}

void require_consistent(const Vocabulary& vocabulary, std::string_view where) {
  if (vocabulary.tokens.empty()) fail(ErrorKind::model, "{}: tokenizer.ggml.tokens: expected tokens, got none", where);
  if (vocabulary.types.size() != vocabulary.tokens.size()) {
    fail(ErrorKind::model, "{}: tokenizer.ggml.token_type: expected {} entries, one a token, got {}", where,
         vocabulary.tokens.size(), vocabulary.types.size());
  }
  const int size = vocabulary.size();
  check_id(where, "bos_token_id", vocabulary.bos, size);
  check_id(where, "eos_token_id", vocabulary.eos, size);
  check_id(where, "eot_token_id", vocabulary.eot, size);
  check_id(where, "eom_token_id", vocabulary.eom, size);
  check_id(where, "unknown_token_id", vocabulary.unknown, size);
  check_id(where, "padding_token_id", vocabulary.padding, size);
  if (vocabulary.add_bos && !vocabulary.bos) {
    fail(ErrorKind::model, "{}: tokenizer.ggml.bos_token_id: expected an id, because add_bos_token is true; got none",
         where);
  }
}

}  // namespace tandem
