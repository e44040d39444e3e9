#include "src/text/tokenizer.h"

#include <algorithm>
#include <array>
#include <utility>

#include "src/base/error.h"
#include "src/text/bpe.h"
#include "src/text/vocabulary_pair.h"

namespace tandem {
namespace {

constexpr std::array<std::string_view, 5> kEndNames = {"<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|end|>",
                                                       "<end_of_turn>"};

}  // namespace

std::vector<TokenId> Tokenizer::encode_prompt(std::string_view bytes, Specials specials) const {
  std::vector<TokenId> ids = encode(bytes, specials);
  const Vocabulary& words = vocabulary();
  if (words.add_bos && words.bos && (ids.empty() || ids.front() != *words.bos)) ids.insert(ids.begin(), *words.bos);
  return ids;
}

std::string Tokenizer::decode(const std::vector<TokenId>& ids, bool show_control) const {
  std::string text;
  for (const TokenId id : ids) text += bytes(id, show_control);
  return text;
}

std::unique_ptr<Tokenizer> make_tokenizer(Vocabulary vocabulary, std::string_view where) {
  if (vocabulary.model != "gpt2") {
    fail(ErrorKind::model, "{}: tokenizer.ggml.model: expected gpt2 (byte-level BPE), got \"{}\"", where,
         vocabulary.model);
  }
  return std::make_unique<BpeTokenizer>(std::move(vocabulary), where);
}

std::vector<TokenId> end_ids(const Vocabulary& vocabulary) {
  std::vector<TokenId> ids;
  if (vocabulary.eos) ids.push_back(*vocabulary.eos);
  if (vocabulary.eot) ids.push_back(*vocabulary.eot);
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    if (vocabulary.types[id] != TokenType::control) continue;
    if (std::find(kEndNames.begin(), kEndNames.end(), vocabulary.tokens[id]) != kEndNames.end()) ids.push_back(id);
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
