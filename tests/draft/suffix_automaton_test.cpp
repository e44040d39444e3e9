// The automaton against the definition, on random texts over small alphabets.
#include "draft/suffix_automaton.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <span>
#include <utility>
#include <vector>

namespace tandem {
namespace {

using Text = std::vector<TokenId>;

// True when the `length` tokens that end at `end` equal those that end the text.
bool ends_alike(std::span<const TokenId> text, int length, int end) {
  return end + 1 >= length &&
         std::equal(text.end() - length, text.end(), text.begin() + (end + 1 - length), text.begin() + (end + 1));
}

// Longest suffix that also ends before the last token, by trying all.
int longest_match(std::span<const TokenId> text) {
  int longest = 0;
  for (int end = 0; end + 1 < static_cast<int>(text.size()); ++end) {
    int length = 0;
    while (ends_alike(text, length + 1, end)) ++length;
    longest = std::max(longest, length);
  }
  return longest;
}

void check_against_definition(SuffixAutomaton& automaton, const Text& text) {
  for (std::size_t n = 1; n <= text.size(); ++n) {
    automaton.append(text[n - 1]);
    const std::span<const TokenId> so_far(text.data(), n);
    const SuffixAutomaton::Match match = automaton.match();
    ASSERT_EQ(match.length, longest_match(so_far)) << "after " << n << " tokens";
    ASSERT_EQ(match.end >= 0, match.length > 0);
    ASSERT_LT(match.end, static_cast<int>(n) - 1);
    ASSERT_TRUE(ends_alike(so_far, match.length, match.end)) << "after " << n << " tokens";
  }
}

// 2n states, 3n edges and 5 changes a token are the theorem's bounds; the table keeps within them too.
void check_bounds(const SuffixAutomaton& automaton) {
  EXPECT_LE(automaton.states(), 2 * automaton.size() + 1);
  EXPECT_LE(automaton.edges(), 3 * automaton.size());
  EXPECT_LE(automaton.work(), std::int64_t{5} * automaton.size());
}

Text random_text(std::mt19937_64& random, int length, int alphabet) {
  Text text(length);
  for (TokenId& token : text) token = static_cast<TokenId>(random() % alphabet) * 40000;
  return text;
}

TEST(SuffixAutomaton, MatchIsTheLongestRepeatedSuffixAndReallyEndsThere) {
  std::mt19937_64 random(1);
  SuffixAutomaton automaton;
  for (int round = 0; round < 40; ++round) {
    const int alphabet = 1 + round % 5;
    automaton.clear();
    ASSERT_NO_FATAL_FAILURE(check_against_definition(automaton, random_text(random, 120, alphabet)));
    check_bounds(automaton);
  }
}

TEST(SuffixAutomaton, MatchHoldsOnPeriodicAndFibonacciTexts) {
  Text periodic(150), fibonacci{0}, previous{1};
  for (int i = 0; i < 150; ++i) periodic[i] = i % 7;
  while (fibonacci.size() < 150) {
    Text next = fibonacci;
    next.insert(next.end(), previous.begin(), previous.end());
    previous = std::exchange(fibonacci, next);
  }
  fibonacci.resize(150);
  for (const Text& text : {periodic, fibonacci}) {
    SuffixAutomaton automaton;
    ASSERT_NO_FATAL_FAILURE(check_against_definition(automaton, text));
    check_bounds(automaton);
  }
}

TEST(SuffixAutomaton, WorkStaysWithinFiveChangesAToken) {
  constexpr int kTokens = 100'000;
  std::mt19937_64 random(2);
  std::vector<Text> texts{random_text(random, kTokens, 1), random_text(random, kTokens, 2),
                          random_text(random, kTokens, 4), Text(kTokens)};
  Text& worst = texts.back();  // a b b b ... b c: the most states
  for (int i = 0; i < kTokens; ++i) worst[i] = i == 0 ? 0 : i + 1 == kTokens ? 2 : 1;
  for (const Text& text : texts) {
    SuffixAutomaton automaton;
    for (const TokenId token : text) automaton.append(token);
    EXPECT_EQ(automaton.size(), kTokens);
    check_bounds(automaton);
  }
}

// Memory is that of the constructor, whatever the text: a context of 4,096 tokens costs 512 KiB at most.
TEST(SuffixAutomaton, MemoryIsBoundedByTheTextThatWasForeseen) {
  std::mt19937_64 random(4);
  for (const int tokens : {1000, 4096, 30000}) {
    SuffixAutomaton automaton(tokens);
    const std::size_t at_start = automaton.bytes();
    EXPECT_LE(at_start, SuffixAutomaton::kMostBytesAToken * static_cast<std::size_t>(tokens) + 64);
    Text worst(static_cast<std::size_t>(tokens), 1);
    worst.front() = 0;
    worst.back() = 2;
    for (const Text& text : {random_text(random, tokens, 2), random_text(random, tokens, 1000), worst}) {
      automaton.clear();
      for (const TokenId token : text) automaton.append(token);
      EXPECT_EQ(automaton.bytes(), at_start);
    }
  }
}

// Steps are counted: as many a token for a long text as for a short one.
TEST(SuffixAutomaton, ATokenCostsAConstantNumberOfSteps) {
  std::mt19937_64 random(6);
  const auto steps_a_token = [](const Text& text) {
    SuffixAutomaton automaton(static_cast<int>(text.size()));
    for (const TokenId token : text) {
      automaton.follow(automaton.match(), token);
      automaton.append(token);
    }
    return static_cast<double>(automaton.probes()) / static_cast<double>(text.size());
  };
  for (const int alphabet : {1, 2, 4, 100, 50000}) {
    const double few = steps_a_token(random_text(random, 2000, alphabet));
    const double many = steps_a_token(random_text(random, 200'000, alphabet));
    EXPECT_LE(many, 40) << alphabet;
    EXPECT_LE(many, 2 * few) << alphabet;
  }
}

// A run of one token has a shorter match for each of its tokens, and a token that never came follows none of them.
TEST(SuffixAutomaton, FollowingANewTokenDoesNotWalkTheWholeText) {
  SuffixAutomaton automaton;
  for (int i = 0; i < 10'000; ++i) automaton.append(1);
  const std::int64_t before = automaton.probes();
  EXPECT_EQ(automaton.follow(automaton.match(), 2).length, 0);
  EXPECT_LE(automaton.probes() - before, 20 * SuffixAutomaton::kMostLinks);
}

TEST(SuffixAutomaton, AMatchThatWasMetAgainEndsAtTheLaterPlace) {
  SuffixAutomaton automaton;
  for (const TokenId token : {1, 2, 3, 1, 2, 4, 1, 2}) automaton.append(token);
  EXPECT_EQ(automaton.match().length, 2);
  EXPECT_EQ(automaton.match().end, 4);
}

TEST(SuffixAutomaton, ClearForgetsTheText) {
  SuffixAutomaton automaton(4);
  for (const TokenId token : {5, 6, 5, 6, 5}) automaton.append(token);
  EXPECT_EQ(automaton.match().length, 3);
  automaton.clear();
  EXPECT_EQ(automaton.size(), 0);
  EXPECT_EQ(automaton.match().length, 0);
  automaton.append(5);
  EXPECT_EQ(automaton.match().length, 0);
  EXPECT_EQ(automaton.match().end, -1);
}

TEST(SuffixAutomaton, FollowingATokenMatchesAsAppendingItWould) {
  std::mt19937_64 random(8);
  for (int round = 0; round < 50; ++round) {
    SuffixAutomaton automaton;
    const TokenId letters = 2 + static_cast<TokenId>(random() % 3);
    Text text;
    for (int n = 0; n < 60; ++n) {
      const TokenId token = static_cast<TokenId>(random() % static_cast<std::uint64_t>(letters));
      const SuffixAutomaton::Match foreseen = automaton.follow(automaton.match(), token);
      text.push_back(token);
      automaton.append(token);
      ASSERT_EQ(foreseen.length, automaton.match().length);
      ASSERT_TRUE(foreseen.length == 0 || ends_alike(text, foreseen.length, foreseen.end));
      ASSERT_LT(foreseen.end, static_cast<int>(text.size()) - 1);
    }
  }
}

}  // namespace
}  // namespace tandem
