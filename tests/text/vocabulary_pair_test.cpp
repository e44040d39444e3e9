// What is said of a pair of vocabularies before anyone commits to it.
#include "src/text/vocabulary_pair.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "src/base/error.h"
#include "src/text/tokenizer.h"
#include "tests/text/tiny_pieces.h"

namespace tandem {
namespace {

bool refused(const Vocabulary& target, const Vocabulary& draft) {
  try {
    require_same_vocabulary(target, draft, "t", "d");
  } catch (const Error&) {
    return true;
  }
  return false;
}

TEST(VocabularyPair, EqualOnesDifferInNothing) {
  const Vocabulary one = tiny_vocabulary("qwen2", {{"a", "b"}});
  const VocabularyComparison found = compare_vocabularies(one, one, 5);
  EXPECT_EQ(found.match(), VocabularyMatch::same);
  EXPECT_EQ(found.target_size, 257);
  EXPECT_EQ(found.draft_size, 257);
  EXPECT_EQ(found.shared_pieces, 257);
  EXPECT_TRUE(found.first.empty());
}

TEST(VocabularyPair, PaddingIsCountedAndNoDifference) {
  const Vocabulary plain = tiny_vocabulary("qwen2");
  Vocabulary padded = plain, named = plain;
  for (const char* name : {"[PAD0]", "[PAD1]", "[PAD2]"}) add(padded, name, TokenType::unused);
  for (const char* name : {"[PAD0]", "<gap>"}) add(named, name, TokenType::unused);
  const VocabularyComparison longer = compare_vocabularies(padded, plain, 5);
  EXPECT_EQ(longer.match(), VocabularyMatch::padding);
  EXPECT_EQ(longer.padding, 3);
  EXPECT_EQ(longer.shared_pieces, 256);
  EXPECT_EQ(compare_vocabularies(plain, padded, 5).padding, 3);
  EXPECT_EQ(compare_vocabularies(padded, named, 5).padding, 2);  // another name, and one that is missing
  EXPECT_EQ(compare_vocabularies(padded, padded, 5).match(), VocabularyMatch::same);
}

TEST(VocabularyPair, DifferencesAreAllCountedAndTheFirstShown) {
  const Vocabulary target = tiny_vocabulary("qwen2", {{"a", "b"}, {"c", "d"}, {"e", "f"}});
  Vocabulary draft = target;
  std::swap(draft.tokens[256], draft.tokens[258]);
  draft.types[97] = TokenType::unused;
  add(draft, "more", TokenType::normal);
  const VocabularyComparison found = compare_vocabularies(target, draft, 3);
  EXPECT_EQ(found.match(), VocabularyMatch::different);
  EXPECT_EQ(found.differing, 4);
  EXPECT_EQ(found.shared_pieces, 258);  // all but the one that is marked unused
  ASSERT_EQ(found.first.size(), 3u);
  EXPECT_EQ(found.first[0].id, 97);
  EXPECT_EQ(found.first[0].target, "\"a\"");
  EXPECT_EQ(found.first[0].draft, "\"a\" (unused)");
  EXPECT_EQ(found.first[1].id, 256);
  EXPECT_EQ(found.first[1].target, "\"ab\"");
  EXPECT_EQ(found.first[1].draft, "\"ef\"");
  EXPECT_EQ(found.first[2].id, 258);
}

TEST(VocabularyPair, OfSentencePieceNamesEveryIdThatDiffers) {
  Vocabulary target = tiny_pieces({" the", "he", "the", "<0x41>"});
  Vocabulary draft = target;
  constexpr TokenId kFirst = 259, kByteA = 3 + 'A';
  std::swap(draft.tokens[kFirst], draft.tokens[kFirst + 2]);
  draft.types[kByteA] = TokenType::normal;  // the text "<0x41>", no longer the byte
  add_piece(draft, "<unused0>", TokenType::unused);
  const VocabularyComparison found = compare_vocabularies(target, draft, 5);
  EXPECT_EQ(found.match(), VocabularyMatch::different);
  EXPECT_EQ(found.differing, 3);
  EXPECT_EQ(found.padding, 1);
  ASSERT_EQ(found.first.size(), 3u);
  EXPECT_EQ(found.first[0].id, kByteA);
  EXPECT_EQ(found.first[0].target, "\"<0x41>\" (byte)");
  EXPECT_EQ(found.first[0].draft, "\"<0x41>\"");
  EXPECT_EQ(found.first[1].id, kFirst);
  EXPECT_EQ(found.first[1].target, "\"\u2581the\"");
  EXPECT_EQ(found.first[1].draft, "\"the\"");
  EXPECT_EQ(found.first[2].id, kFirst + 2);
  EXPECT_TRUE(refused(target, draft));
  // Scores and the handling of spaces are the tokenizer's own; ids mean the same.
  Vocabulary rescored = target;
  for (float& score : rescored.scores) score -= 1;
  rescored.add_space_prefix = true;
  EXPECT_EQ(compare_vocabularies(target, rescored, 5).match(), VocabularyMatch::same);
}

// The report and the refusal come from one rule.
TEST(VocabularyPair, IsDifferentWhereverThePairIsRefused) {
  const Vocabulary plain = tiny_vocabulary("qwen2", {{"a", "b"}});
  Vocabulary padded = plain, unused = plain, longer = plain, renamed = plain;
  add(padded, "[PAD]", TokenType::unused);
  unused.types[256] = TokenType::unused;
  add(longer, "x y", TokenType::normal);
  renamed.tokens[0] = "zero";
  const std::vector<Vocabulary> all{plain, padded, unused, longer, renamed};
  for (const Vocabulary& target : all) {
    for (const Vocabulary& draft : all) {
      const bool different = compare_vocabularies(target, draft, 1).match() == VocabularyMatch::different;
      EXPECT_EQ(different, refused(target, draft));
    }
  }
}

}  // namespace
}  // namespace tandem
