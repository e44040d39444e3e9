// Masks of a vocabulary: every token is tried alone, byte by byte, against what the walk over all of them found.
#include "src/sample/grammar/token_masks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "src/sample/grammar/gbnf.h"
#include "src/sample/grammar/grammar_constraint.h"
#include "tests/text/tiny_vocabulary.h"

namespace tandem {
namespace {

// Single bytes, and pieces that cross characters and rules: random runs of what the grammars below are made of.
Vocabulary many_pieces(std::uint64_t seed, int count) {
  static const std::vector<std::string> kParts{
      "a", "b",  "c",   "1",  "2",  "{",    "}",    "[",    "]",        "\"",       ",",    ":",
      " ", "\n", "yes", "no", "\\", "name", "true", "\xC3", "\xC3\xA9", "\xE2\x82", "\xAC", "\xF0\x9F\x98\x80"};
  std::mt19937_64 random(seed);
  Vocabulary vocabulary = tiny_vocabulary("qwen2");
  for (int i = 0; i < count; ++i) {
    std::string text;
    for (std::uint64_t left = 1 + random() % 5; left > 0; --left) text += kParts[random() % kParts.size()];
    add(vocabulary, in_alphabet(text), TokenType::normal);
  }
  // A bush of tokens below one beginning, which masks take in at once.
  for (int i = 0; i < 200; ++i) {
    std::string text = "ab";
    for (std::uint64_t left = random() % 9; left > 0; --left) text += static_cast<char>('a' + random() % 3);
    add(vocabulary, in_alphabet(text), TokenType::normal);
  }
  // The same of characters, whole and begun.
  for (int i = 0; i < 200; ++i) {
    std::string text = i % 2 == 0 ? "\xE4\xBD\xA0" : "a";
    for (std::uint64_t left = random() % 5; left > 0; --left) {
      append_utf8(text,
                  static_cast<char32_t>(std::vector<int>{'a', 0xE9, 0x4F60, 0x1F600}[random() % 4] + random() % 3));
    }
    text.resize(text.size() - random() % std::min<std::size_t>(3, text.size()));
    add(vocabulary, in_alphabet(text), TokenType::normal);
  }
  return vocabulary;
}

struct Fixture {
  explicit Fixture(const std::string& grammar, std::uint64_t seed = 1) {
    Vocabulary vocabulary = many_pieces(seed, 600);
    control = add(vocabulary, "<|im_start|>", TokenType::control);
    end = add(vocabulary, "<|im_end|>", TokenType::control);
    unused = add(vocabulary, "yes", TokenType::unused);
    defined = add(vocabulary, "[", TokenType::user_defined);
    std::vector<bool> usable(static_cast<std::size_t>(vocabulary.size()), true);
    usable[static_cast<std::size_t>(unused)] = false;
    words = make_tokenizer(std::move(vocabulary), "tiny");
    const TokenMask mask(usable);
    masks = std::make_shared<TokenMasks>(parse_gbnf(grammar, "a.gbnf"), "constraint.grammar",
                                         std::make_shared<VocabularyTrie>(*words, mask), mask, std::vector{end});
  }
  // By the automaton alone.
  bool fits(int state, TokenId id) {
    if (id == end) return masks->automaton().may_end(state);
    if (id == control || id == unused) return false;
    return masks->automaton().after(state, words->bytes(id)) != Automaton::kRefused;
  }
  TokenId control, end, unused, defined;
  std::unique_ptr<Tokenizer> words;
  std::shared_ptr<TokenMasks> masks;
};

const std::vector<std::string> kGrammars{
    R"(root ::= "yes" | "no" | "yes, no")",
    R"(root ::= value
value ::= "{" (pair ("," pair)*)? "}" | "[" (value ("," value)*)? "]" | string | [0-9]+ | "true"
pair ::= string ":" " "? value
string ::= "\"" ([^"\\\x00-\x1f] | "\\" ["\\/bfnrt])* "\"")",
    "root ::= \"ab\" [abc]{0,9} \"\\n\" | \"a\"{2,7} .{1,3}",
    "root ::= [a-c]{3,12}",
    "root ::= .{0,3} \"!\"",
    "root ::= [^\"]* \"\\\"\"",
    "root ::= [^\\n\u00ea]{2,9} | [a-e\u4f60-\u4fff]*",
    "root ::= (\"é\" | \"€\" | \"😀\" | [a-b] [^\"])+",
    "root ::= line+\nline ::= \"name\" \" \"* [a-c12]{1,4} \"\\n\"",
};

TEST(TokenMasks, HoldWhatTheAutomatonTakesTokenByToken) {
  for (const std::string& grammar : kGrammars) {
    SCOPED_TRACE(grammar);
    Fixture f(grammar);
    std::mt19937_64 random(7);
    int visited = 0;
    for (int walk = 0; walk < 30; ++walk) {
      int state = f.masks->automaton().start();
      for (int step = 0; step < 12 && !f.masks->automaton().complete(state); ++step, ++visited) {
        std::vector<TokenId> allowed;
        const TokenMask mask = f.masks->mask(state);
        for (TokenId id = 0; id < f.words->vocabulary().size(); ++id) {
          ASSERT_EQ(mask.allows(id), f.fits(state, id)) << "token " << id;
          ASSERT_EQ(f.masks->admits(state, id), mask.allows(id)) << "token " << id;
          if (mask.allows(id)) allowed.push_back(id);
        }
        ASSERT_FALSE(allowed.empty());
        ASSERT_EQ(f.masks->only(state), allowed.size() == 1 ? allowed[0] : -1);
        const TokenId next = allowed[random() % allowed.size()];
        if (next == f.end) break;
        state = f.masks->after(state, next);
      }
    }
    EXPECT_GT(visited, 30);
  }
}

TEST(TokenMasks, EqualStatesShareOneMask) {
  Fixture f(kGrammars[1]);
  Automaton& automaton = f.masks->automaton();
  const int a = automaton.after(automaton.start(), "[\"aa"), b = automaton.after(automaton.start(), "[\"bca1");
  EXPECT_EQ(&f.masks->mask(a), &f.masks->mask(b));
  EXPECT_FALSE(f.masks->mask(a).runs().empty());
}

TEST(TokenMasks, EndIdsComeWhereTheGrammarMayEndAndNowhereElse) {
  Fixture f(kGrammars[0]);
  Automaton& automaton = f.masks->automaton();
  const int start = automaton.start(), yes = automaton.after(start, "yes"), no = automaton.after(start, "no");
  EXPECT_FALSE(f.masks->mask(start).allows(f.end));
  EXPECT_TRUE(f.masks->mask(yes).allows(f.end));
  EXPECT_TRUE(f.masks->admits(yes, f.end));
  EXPECT_FALSE(automaton.complete(yes)) << "more may follow";
  EXPECT_TRUE(automaton.complete(no));
  EXPECT_EQ(f.masks->only(no), f.end);
  EXPECT_EQ(f.masks->after(yes, f.end), TokenMasks::kOver);
  EXPECT_EQ(f.masks->only(TokenMasks::kOver), f.end);
}

TEST(TokenMasks, WithoutEndIdsAnythingMayFollowTheEnd) {
  Vocabulary vocabulary = tiny_vocabulary("qwen2");
  const auto words = make_tokenizer(std::move(vocabulary), "tiny");
  TokenMasks masks(parse_gbnf("root ::= \"a\"", "a"), "a", std::make_shared<VocabularyTrie>(*words, TokenMask()),
                   TokenMask(), {});
  const int whole = masks.after(masks.automaton().start(), 'a');
  EXPECT_TRUE(masks.automaton().complete(whole));
  EXPECT_TRUE(masks.mask(whole).allows('q'));
  EXPECT_EQ(masks.after(whole, 'q'), TokenMasks::kOver);
}

TEST(VocabularyTrie, FindsTheLongestTokenThatATextBeginsWith) {
  Vocabulary vocabulary = tiny_vocabulary("qwen2");
  const TokenId na = add(vocabulary, "na", TokenType::normal), name = add(vocabulary, "name", TokenType::normal);
  add(vocabulary, "names", TokenType::control);
  const auto words = make_tokenizer(std::move(vocabulary), "tiny");
  const VocabularyTrie trie(*words, TokenMask());
  EXPECT_EQ(trie.longest_prefix("names"), name);
  EXPECT_EQ(trie.longest_prefix("nam"), na);
  EXPECT_EQ(trie.longest_prefix("n"), 'n');
  EXPECT_EQ(trie.longest_prefix(""), -1);
  EXPECT_EQ(trie.text(name), "name");
  EXPECT_EQ(trie.text(name + 1), "");
}

// Whatever was pushed and popped in between, the state is that of the tokens at hand.
TEST(GrammarConstraint, FollowsTheContextThroughPushesAndPops) {
  Fixture f(kGrammars[1]);
  GrammarConstraint constraint(f.masks);
  std::mt19937_64 random(5);
  Context context;
  context.push(std::vector<TokenId>{1, 2, 3});
  constraint.begin(3);
  for (int i = 0; i < 600; ++i) {
    if (random() % 3 == 0 && context.size() > 3) {
      context.pop(1 + static_cast<int>(random() % static_cast<std::uint64_t>(context.size() - 3)));
    } else {
      const TokenMask mask = constraint.mask(constraint.state(context));
      const TokenRun run = mask.runs()[random() % mask.runs().size()];
      context.push(random() % 20 == 0 ? 'q' : run.begin);  // now and then one that is not admitted
    }
    GrammarConstraint fresh(f.masks);
    fresh.begin(3);
    ASSERT_EQ(constraint.state(context), fresh.state(context));
    for (int n = 0; n <= context.size() - 3; ++n) ASSERT_EQ(constraint.state_behind(n), fresh.state_behind(n));
    if (i == 300) f.masks->forget();
  }
}

TEST(GrammarConstraint, LikelyTokensSpellCertainBytes) {
  Fixture f("root ::= \"name\" [ab]");
  GrammarConstraint constraint(f.masks);
  const TokenId likely = constraint.likely(f.masks->automaton().start());
  ASSERT_GE(likely, 0);
  EXPECT_EQ(f.words->bytes(likely), "name");
  const int behind = constraint.after(f.masks->automaton().start(), likely);
  EXPECT_EQ(constraint.likely(behind), -1);
  EXPECT_EQ(constraint.likely(TokenMasks::kOver), -1);
}

TEST(GrammarConstraint, ExplainsWhereItStands) {
  Fixture f(kGrammars[0]);
  GrammarConstraint constraint(f.masks);
  Context context;
  context.push(std::vector<TokenId>{'q', 'y', 'e'});
  constraint.begin(1);
  EXPECT_EQ(constraint.explain(context),
            "constraint.grammar: behind 2 tokens of the answer, \"ye\": expected one of the bytes s");
  context.push('s');
  EXPECT_EQ(constraint.explain(context),
            "constraint.grammar: behind 3 tokens of the answer, \"yes\": expected an end id or one of the bytes ,");
}

}  // namespace
}  // namespace tandem
