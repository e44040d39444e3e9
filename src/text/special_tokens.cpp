#include "src/text/special_tokens.h"

#include <algorithm>
#include <array>
#include <functional>

namespace tandem {
namespace {

// End marks that count as control tokens whatever their type in the file, the same names as llama.cpp's list of
// end-of-generation texts: several converters left them `normal` (`</s>` in the Qwen files).
constexpr std::array<std::string_view, 17> kEndMarks = {"<|eot_id|>",
                                                        "<|im_end|>",
                                                        "<|end|>",
                                                        "<|return|>",
                                                        "<|call|>",
                                                        "<end_of_turn>",
                                                        "<|endoftext|>",
                                                        "<|end_of_text|>",
                                                        "</s>",
                                                        "<|eom_id|>",
                                                        "<EOT>",
                                                        "_<EOT>",
                                                        "[EOT]",
                                                        "[EOS]",
                                                        "<end_of_utterance>",
                                                        "<eos>",
                                                        "<\uFF5Cend\u2581of\u2581sentence\uFF5C>"};

bool wanted(const Vocabulary& vocabulary, TokenId id, Spelled spelled) {
  const TokenType type = vocabulary.types[id];
  switch (spelled) {
    case Spelled::user_defined:
      return type == TokenType::user_defined;
    case Spelled::control:
      return type == TokenType::control;
    case Spelled::marks:
    case Spelled::all:
      break;
  }
  return (type == TokenType::user_defined && spelled == Spelled::all) || type == TokenType::control ||
         type == TokenType::unknown || (type != TokenType::unused && is_end_mark(vocabulary.tokens[id]));
}

}  // namespace

bool is_end_mark(std::string_view token) {
  return std::find(kEndMarks.begin(), kEndMarks.end(), token) != kEndMarks.end();
}

SpecialTokens::SpecialTokens(const Vocabulary& vocabulary, Spelled spelled) {
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    const std::string_view token = vocabulary.tokens[id];
    if (token.empty() || !wanted(vocabulary, id, spelled)) continue;
    ids_.emplace(token, id);
    longest_ = std::max(longest_, token.size());
    std::vector<std::size_t>& lengths = lengths_[static_cast<unsigned char>(token[0])];
    const auto place = std::lower_bound(lengths.begin(), lengths.end(), token.size(), std::greater<>());
    if (place == lengths.end() || *place != token.size()) lengths.insert(place, token.size());
  }
}

SpecialTokens::Match SpecialTokens::find(std::string_view text, std::size_t from) const {
  for (std::size_t at = from; at < text.size(); ++at) {
    for (const std::size_t length : lengths_[static_cast<unsigned char>(text[at])]) {
      if (length > text.size() - at) continue;
      const auto found = ids_.find(text.substr(at, length));
      if (found != ids_.end()) return {at, length, found->second};
    }
  }
  return {text.size(), 0, 0};
}

}  // namespace tandem
