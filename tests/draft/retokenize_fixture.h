// Two byte-level vocabularies that split the same text otherwise, and drafts that know what they write.
#pragma once
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "draft/drafter.h"
#include "src/text/tokenizer.h"
#include "tests/text/tiny_vocabulary.h"

namespace tandem::test {

// Words and syllables of several scripts as tokens, as a target would have them.
inline Vocabulary target_vocabulary() {
  Vocabulary v = tandem::tiny_vocabulary("qwen2", {{"t", "h"},
                                                   {"th", "e"},
                                                   {" ", "the"},
                                                   {" ", "a"},
                                                   {"i", "n"},
                                                   {"in", "g"},
                                                   {" ", " "},
                                                   {"  ", "  "},
                                                   {"\n", "\n"},
                                                   {"e", "r"},
                                                   {"o", "n"},
                                                   {"\xC3", "\xBC"},
                                                   {"\xE6", "\x97"},
                                                   {"\xE6\x97", "\xA5"},
                                                   {"\xF0\x9F", "\x98"},
                                                   {"\xF0", "\x9F"}});
  add(v, "<|pad|>", TokenType::control);
  add(v, "<|im_start|>", TokenType::control);
  v.eos = add(v, "<|im_end|>", TokenType::control);
  return v;
}

// Other merges, digits apart, a BOS, and control tokens at other ids.
inline Vocabulary draft_vocabulary() {
  Vocabulary v = tandem::tiny_vocabulary("smollm", {{"h", "e"},
                                                    {"t", "he"},
                                                    {"e", "r"},
                                                    {"i", "n"},
                                                    {" ", "t"},
                                                    {" ", " "},
                                                    {"l", "l"},
                                                    {"he", "ll"},
                                                    {"hell", "o"},
                                                    {"\xD0", "\xB8"},
                                                    {"\xE6", "\x97"}});
  v.eos = add(v, "<|im_end|>", TokenType::control);
  add(v, "<|im_start|>", TokenType::control);
  v.bos = add(v, "<|begin|>", TokenType::control);
  v.add_bos = true;
  return v;
}

struct TwoVocabularies {
  std::unique_ptr<Tokenizer> target = make_tokenizer(target_vocabulary(), "target.gguf");
  std::unique_ptr<Tokenizer> draft = make_tokenizer(draft_vocabulary(), "draft.gguf");
  TokenId target_id(std::string_view control) const { return id(*target, control); }
  TokenId draft_id(std::string_view control) const { return id(*draft, control); }
  std::vector<TokenId> encode(std::string_view text) const { return target->encode(text, Specials::literal); }

 private:
  static TokenId id(const Tokenizer& tokenizer, std::string_view control) {
    return tokenizer.encode(control, Specials::parse).front();
  }
};

// Texts of many scripts, code and odd bytes.
inline std::vector<std::string> golden_texts() {
  std::ifstream in(std::string(TANDEM_SOURCE_DIR) + "/tests/golden/texts.json");
  std::vector<std::string> texts = nlohmann::json::parse(in)["tokenize"].get<std::vector<std::string>>();
  texts.insert(texts.end(), {"\xE2\x80", "ok\xE6\xAD", "\xFF\xFE\x01", "a\xC0\xAF b", "\xF0\x9F\x98"});
  return texts;
}

// Writes what it is told, a token of its own vocabulary a step: a draft model that knows the text.
class Writer final : public Drafter {
 public:
  // `ids`: the whole text in the draft's vocabulary, BOS included. `probability`: of every token.
  explicit Writer(std::vector<TokenId> ids, double probability = 1) : ids_(std::move(ids)), probability_(probability) {}

  const TokenTree& propose(Context& context, LengthPolicy& policy) override {
    asked.emplace_back(context.tokens().begin(), context.tokens().end());
    tree_.clear(context.tokens().back());
    const auto at = static_cast<std::size_t>(context.size());
    const DraftQuestion question{1, 1, 1, -1, DraftSource::model, 0, feed};
    if (at >= ids_.size() || !policy.allow_draft_step(question)) return tree_;
    DraftQuestion row = question;
    row.next_confidence = probability_;
    if (policy.allow_row(row)) tree_.add(0, ids_[at], ChildKind::deterministic, DraftSource::model);
    return tree_;
  }
  void observe(const Observation&, const Context&) override {}
  std::string take_warning() override { return std::exchange(warning, {}); }
  void reset() override {}
  std::string_view name() const override { return "writer"; }

  std::vector<std::vector<TokenId>> asked;  // contexts, one a step
  int feed = 1;
  std::string warning;

 private:
  std::vector<TokenId> ids_;
  double probability_;
  TokenTree tree_;
};

}  // namespace tandem::test
