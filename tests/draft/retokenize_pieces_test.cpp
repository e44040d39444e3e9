// Drafting through text where one side, or both, puts a space in front of every text that begins.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "draft/retokenize.h"
#include "tests/draft/retokenize_fixture.h"
#include "tests/text/tiny_pieces.h"

namespace tandem::test {
namespace {

Vocabulary pieces(std::vector<std::string> words, bool space_prefix) {
  words.insert(words.end(), {" ", "a", "e", "h", "i", "n", "o", "t", "r", "s", "l", "\n", "1", "2", ".", ","});
  Vocabulary v = tandem::tiny_pieces(words);
  v.add_space_prefix = space_prefix;
  add_piece(v, "\n\n", TokenType::user_defined);
  return v;
}

Vocabulary target_pieces(bool space_prefix = true) {
  return pieces({"th", "the", " the", " a", "in", "er", "  ", "on", "lin", "line", " line"}, space_prefix);
}

Vocabulary draft_pieces(bool space_prefix = true) {
  return pieces({"he", " t", "in", "line", " the", "es", "   "}, space_prefix);
}

struct Pair {
  std::string name;
  Vocabulary target, draft;
};

std::vector<Pair> pairs() {
  return {{"both with a prefix", target_pieces(), draft_pieces()},
          {"both without", target_pieces(false), draft_pieces(false)},
          {"the target with one", target_pieces(), draft_pieces(false)},
          {"the draft with one", target_pieces(false), draft_pieces()},
          {"pieces to bytes", target_pieces(), draft_vocabulary()},
          {"bytes to pieces", target_vocabulary(), draft_pieces()}};
}

// What begins every text of a target: its BOS, or a control token that the draft does not know.
TokenId opening(const Tokenizer& tokenizer) {
  const Vocabulary& v = tokenizer.vocabulary();
  return v.bos ? *v.bos : tokenizer.encode("<|pad|>", Specials::parse).front();
}

TEST(RetokenizePieces, TheDraftReadsWhatAFreshProcessWouldRead) {
  for (const Pair& pair : pairs()) {
    const auto target = make_tokenizer(pair.target, "t"), draft = make_tokenizer(pair.draft, "d");
    Translation translation(*target, *draft);
    for (const std::string& text : golden_texts()) {
      const std::vector<TokenId> ids = target->encode(text, Specials::literal);
      translation.reset();
      for (std::size_t count = 0; count <= ids.size(); ++count) {
        const std::vector<TokenId> part(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(count));
        const auto read = translation.follow(part);
        ASSERT_EQ(std::vector<TokenId>(read.begin(), read.end()),
                  draft->encode_prompt(target->decode(part, false, Place::begins), Specials::literal))
            << pair.name << ": " << text;
      }
    }
  }
}

// A draft that writes the right text is right token by token, from the very start of it.
TEST(RetokenizePieces, TheRightTextGivesTheTargetsOwnTokens) {
  for (const Pair& pair : pairs()) {
    const auto target = make_tokenizer(pair.target, "t"), draft = make_tokenizer(pair.draft, "d");
    int proposed = 0, started = 0;
    for (const std::string& text : golden_texts()) {
      std::vector<TokenId> ids{opening(*target)};
      for (const TokenId id : target->encode(text, Specials::literal)) ids.push_back(id);
      std::vector<TokenId> written = draft->encode_prompt(text, Specials::literal);
      for (std::size_t count = 1; count < ids.size(); ++count) {
        Translation translation(*target, *draft);
        const std::span<const TokenId> committed = std::span(ids).first(count);
        const auto read = translation.follow(committed);
        if (read.size() >= written.size() || !std::equal(read.begin(), read.end(), written.begin())) continue;
        RetokenizingDrafter drafter(std::make_unique<Writer>(written), *target, *draft);
        Context context;
        context.push(committed);
        FixedLength policy(8, kMaxTreeNodes, 0);
        policy.begin_step({kMaxTreeNodes, kMaxTreeNodes});
        const TokenTree& tree = drafter.propose(context, policy);
        for (int node = 1; node < tree.size(); ++node) {
          const std::size_t at = count + static_cast<std::size_t>(node) - 1;
          if (node + 1 < tree.size()) {  // only a last token that more text would have changed may differ
            ASSERT_LT(at, ids.size());
            ASSERT_EQ(tree.token(node), ids[at]) << pair.name << ": " << text;
          }
          proposed += at < ids.size() && tree.token(node) == ids[at];
          started += count == 1;
        }
      }
    }
    EXPECT_GT(proposed, 500) << pair.name;
    EXPECT_GT(started, 30) << pair.name;
  }
}

}  // namespace
}  // namespace tandem::test
