#include "src/text/tokenizer.h"

#include <algorithm>
#include <utility>

#include "src/base/error.h"
#include "src/text/bpe.h"
#include "src/text/sentencepiece.h"
#include "src/text/special_tokens.h"
#include "src/text/vocabulary_pair.h"

namespace tandem {

std::vector<TokenId> Tokenizer::with_bos(std::vector<TokenId> ids) const {
  const Vocabulary& words = vocabulary();
  if (words.add_bos && words.bos && (ids.empty() || ids.front() != *words.bos)) ids.insert(ids.begin(), *words.bos);
  return ids;
}

std::string Tokenizer::decode(const std::vector<TokenId>& ids, bool show_control, Place place) const {
  std::string text;
  for (const TokenId id : ids) {
    std::string_view more = bytes(id, show_control);
    const bool control = vocabulary().is_control(id);  // text begins anew behind it
    if (place == Place::begins && adds_space() && !control && more.starts_with(' ')) more.remove_prefix(1);
    text += more;
    place = control ? Place::begins : Place::goes_on;
  }
  return text;
}

std::unique_ptr<Tokenizer> make_tokenizer(Vocabulary vocabulary, std::string_view where) {
  require_consistent(vocabulary, where);
  if (vocabulary.model == "gpt2") return std::make_unique<BpeTokenizer>(std::move(vocabulary), where);
  if (vocabulary.model == "llama") return std::make_unique<SentencePieceTokenizer>(std::move(vocabulary), where);
  fail(ErrorKind::model,
       "{}: tokenizer.ggml.model: expected gpt2 (byte-level BPE) or llama (SentencePiece BPE), got \"{}\"", where,
       vocabulary.model);
}

std::vector<TokenId> end_ids(const Vocabulary& vocabulary) {
  std::vector<TokenId> ids;
  if (vocabulary.eos) ids.push_back(*vocabulary.eos);
  if (vocabulary.eot) ids.push_back(*vocabulary.eot);
  if (vocabulary.eom) ids.push_back(*vocabulary.eom);
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    if (vocabulary.types[id] == TokenType::control && is_end_mark(vocabulary.tokens[id])) ids.push_back(id);
  }
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

void require_same_vocabulary(const Vocabulary& target, const Vocabulary& draft, std::string_view target_name,
                             std::string_view draft_name) {
  const VocabularyComparison found = compare_vocabularies(target, draft, 1);
  if (found.match() != VocabularyMatch::different) return;
  const TokenDifference& first = found.first.front();
  fail(ErrorKind::model,
       "{}: its vocabulary of {} tokens is not that of {} ({} tokens): the first difference is id {}: expected {}, "
       "got {}; a draft with another vocabulary needs draft.retokenize: true",
       draft_name, found.draft_size, target_name, found.target_size, first.id, first.target, first.draft);
}

}  // namespace tandem
