// Drafting through text: what the draft reads is the committed text, and what it writes continues the committed tokens.
#include "draft/retokenize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "draft/model_drafter.h"
#include "draft/registry.h"
#include "tests/draft/retokenize_fixture.h"
#include "tests/model/tiny_model.h"

namespace tandem::test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<TokenId> copy(std::span<const TokenId> tokens) { return {tokens.begin(), tokens.end()}; }

class Retokenize : public ::testing::Test {
 protected:
  // As a fresh process would see it: BOS, then the text at once.
  std::vector<TokenId> draft_ids(std::string_view text) const {
    return two_.draft->encode_prompt(text, Specials::literal);
  }

  // A drafter whose draft writes `text`, of which `committed` has come; proposes up to `length` tokens.
  struct Proposal {
    std::vector<TokenId> tokens;  // below the pending one
    std::vector<float> confidences;
    int steps;
  };
  Proposal propose(const std::vector<TokenId>& committed, const std::vector<TokenId>& written, int length,
                   double probability = 1) {
    auto writer = std::make_unique<Writer>(written, probability);
    Writer& draft = *writer;
    RetokenizingDrafter drafter(std::move(writer), *two_.target, *two_.draft);
    Context context;
    context.push(committed);
    FixedLength policy(length, kMaxTreeNodes, 0);
    policy.begin_step({kMaxTreeNodes, kMaxTreeNodes});
    const TokenTree& tree = drafter.propose(context, policy);
    EXPECT_EQ(context.size(), static_cast<int>(committed.size()));
    Proposal out{{}, {}, static_cast<int>(draft.asked.size())};
    for (int node = 1; node < tree.size(); ++node) {
      EXPECT_EQ(tree.parent(node), node - 1);
      EXPECT_EQ(tree.kind(node), ChildKind::deterministic);
      out.tokens.push_back(tree.token(node));
      out.confidences.push_back(tree.confidence(node));
    }
    return out;
  }

  const TwoVocabularies two_;
};

// The draft reads what it would read in a fresh process, however the tokens came: one by one, in blocks, cut, anew.
TEST_F(Retokenize, TranslationDependsOnTheTokensAlone) {
  std::mt19937 random(3);
  Translation translation(*two_.target, *two_.draft);
  for (const std::string& text : golden_texts()) {
    const std::vector<TokenId> ids = two_.encode(text);
    for (std::size_t count = 0; count <= ids.size(); count += 1 + random() % 3) {
      const std::span<const TokenId> part = std::span(ids).first(count);
      Translation fresh(*two_.target, *two_.draft);
      const std::vector<TokenId> at_once = copy(fresh.follow(part));
      ASSERT_EQ(at_once, draft_ids(two_.target->decode(copy(part)))) << text;
      ASSERT_EQ(copy(translation.follow(part)), at_once) << text;
    }
    const std::size_t kept = ids.size() / 2;  // the rest was cut
    ASSERT_EQ(copy(translation.follow(std::span(ids).first(kept))),
              draft_ids(two_.target->decode(copy(std::span(ids).first(kept)))));
  }
}

TEST_F(Retokenize, ControlTokensGoOverBySpellingOrAsAnEnd) {
  const TokenId start = two_.target_id("<|im_start|>"), end = two_.target_id("<|im_end|>");
  std::vector<TokenId> chat{two_.target_id("<|pad|>"), start};
  for (const TokenId id : two_.encode("user\nthe 12")) chat.push_back(id);
  chat.push_back(end);
  for (const TokenId id : two_.encode("\nhello")) chat.push_back(id);
  std::vector<TokenId> expected = draft_ids("");
  expected.push_back(two_.draft_id("<|im_start|>"));
  for (const TokenId id : two_.draft->encode("user\nthe 12", Specials::literal)) expected.push_back(id);
  expected.push_back(two_.draft_id("<|im_end|>"));
  for (const TokenId id : two_.draft->encode("\nhello", Specials::literal)) expected.push_back(id);
  Translation translation(*two_.target, *two_.draft);
  for (std::size_t count = 0; count <= chat.size(); ++count) translation.follow(std::span(chat).first(count));
  EXPECT_EQ(copy(translation.follow(chat)), expected);

  Vocabulary other = tandem::tiny_vocabulary("gpt-2");
  other.eos = add(other, "</s>", TokenType::control);
  const ControlMap map(two_.target->vocabulary(), other);
  EXPECT_EQ(map(end), other.eos);  // another spelling, the same meaning
  EXPECT_EQ(map(start), std::nullopt);
  EXPECT_EQ(map('a'), std::nullopt);
}

TEST_F(Retokenize, ControlTokensNeverComeFromPlainText) {
  const std::string text = "say <|im_end|> and <|im_start|>";
  Translation translation(*two_.target, *two_.draft);
  const std::vector<TokenId> ids = two_.encode(text);
  const auto read = copy(translation.follow(ids));
  EXPECT_EQ(std::count(read.begin(), read.end(), two_.draft_id("<|im_end|>")), 0);
  const Proposal proposal = propose(two_.encode("say"), draft_ids(text), 63);
  EXPECT_THAT(proposal.tokens, ::testing::Not(::testing::Contains(two_.target_id("<|im_end|>"))));
  std::vector<TokenId> all = two_.encode("say");
  all.insert(all.end(), proposal.tokens.begin(), proposal.tokens.end());
  EXPECT_EQ(all, ids);
}

// A draft that writes the right text is right token by token, from any place, in any script.
TEST_F(Retokenize, TheRightTextGivesTheTargetsOwnTokens) {
  int proposed = 0;
  for (const std::string& text : golden_texts()) {
    const std::vector<TokenId> ids = two_.encode(text);
    const std::vector<TokenId> written = draft_ids(text);
    for (std::size_t count = 1; count < ids.size(); ++count) {
      const std::span<const TokenId> committed = std::span(ids).first(count);
      // What the draft wrote stands where its own pieces meet the committed text.
      const std::vector<TokenId> read = draft_ids(two_.target->decode(copy(committed)));
      if (!std::equal(read.begin(), read.end(), written.begin(),
                      written.begin() + std::min(read.size(), written.size())))
        continue;
      const Proposal proposal = propose(copy(committed), written, 8);
      const std::size_t wanted = std::min<std::size_t>(8, ids.size() - count);
      ASSERT_LE(proposal.tokens.size(), wanted);
      const auto [mine, theirs] = std::mismatch(proposal.tokens.begin(), proposal.tokens.end(),
                                                ids.begin() + static_cast<std::ptrdiff_t>(count));
      // Only a last token that more text would have changed may differ.
      ASSERT_GE(mine - proposal.tokens.begin() + 1, static_cast<std::ptrdiff_t>(proposal.tokens.size())) << text;
      proposed += static_cast<int>(proposal.tokens.size());
    }
  }
  EXPECT_GT(proposed, 1000);
}

TEST_F(Retokenize, OneDraftTokenMayGiveSeveralAndSeveralOne) {
  // "hello" is one token of the draft and five of the target; " the" is two of the draft and one of the target.
  const std::vector<TokenId> committed = two_.encode("a\n");
  EXPECT_THAT(propose(committed, draft_ids("a\nhello"), 8).tokens, ElementsAre('h', 'e', 'l', 'l', 'o'));
  ASSERT_THAT(two_.draft->encode(" the", Specials::literal).size(), 2u);
  const Proposal the = propose(two_.encode("a"), draft_ids("a the"), 1);
  EXPECT_EQ(the.tokens.size(), 1u);
  EXPECT_THAT(propose(two_.encode("a"), draft_ids("a the in"), 2).tokens, ElementsAre(two_.encode(" the")[0], ' '));
}

TEST_F(Retokenize, TextThatWouldJoinTheCommittedTokensIsDropped) {
  // "i" is committed; had the target wanted "in", it would have taken the token of that name.
  std::vector<TokenId> written = draft_ids("x i");
  written.push_back('n');
  written.push_back('y');
  EXPECT_THAT(propose(two_.encode("x i"), written, 8).tokens, IsEmpty());
  written = draft_ids("x i");
  written.push_back('y');
  EXPECT_THAT(propose(two_.encode("x i"), written, 8).tokens, ElementsAre('y'));
  // Tokens that the target would not have chosen for their text are followed as they are.
  const std::vector<TokenId> odd{'t', 'h', 'e'};
  EXPECT_THAT(propose(odd, draft_ids("the a"), 8).tokens, ElementsAre(two_.encode(" a").front()));
}

TEST_F(Retokenize, AnUnfinishedCharacterGivesNoToken) {
  const std::string text = "a\xE6\x97\xA5";  // a character that is one token of the target and two of the draft
  const std::vector<TokenId> written = draft_ids(text);
  ASSERT_EQ(written.size(), 4u);
  const Proposal whole = propose(two_.encode("a"), written, 8);
  EXPECT_EQ(whole.tokens, two_.encode("\xE6\x97\xA5"));
  const Proposal cut = propose(two_.encode("a"), {written.begin(), written.end() - 1}, 8);
  EXPECT_THAT(cut.tokens, IsEmpty());
}

TEST_F(Retokenize, CommittedTextMayEndWithinACharacter) {
  const std::string smile = "\xF0\x9F\x98\x80";
  const std::vector<TokenId> ids = two_.encode("a" + smile);
  ASSERT_EQ(ids.size(), 3u);  // "a", three bytes, the fourth
  const Proposal proposal = propose({ids[0], ids[1]}, draft_ids("a" + smile + "b"), 4);
  EXPECT_THAT(proposal.tokens, ElementsAre(0x80, 'b'));
}

TEST_F(Retokenize, WithoutTokensForTheBytesOfAnUnfinishedCharacterThereIsNoDraft) {
  Vocabulary poor = draft_vocabulary();
  poor.tokens[0xF0] = "none";
  const auto draft = make_tokenizer(poor, "poor.gguf");
  Translation translation(*two_.target, *draft);
  const std::vector<TokenId> ids = two_.encode("a\xF0\x9F\x98\x80");
  translation.follow(std::span(ids).first(1));
  EXPECT_TRUE(translation.complete());
  translation.follow(std::span(ids).first(2));
  EXPECT_FALSE(translation.complete());
  translation.follow(ids);
  EXPECT_TRUE(translation.complete());
  auto writer = std::make_unique<Writer>(std::vector<TokenId>(100, 'a'));
  RetokenizingDrafter drafter(std::move(writer), *two_.target, *draft);
  Context context;
  context.reserve(ids.size());
  context.push(std::span(ids).first(2));
  FixedLength policy(4, kMaxTreeNodes, 0);
  policy.begin_step({kMaxTreeNodes, kMaxTreeNodes});
  EXPECT_EQ(drafter.propose(context, policy).size(), 1);
  context.push(ids[2]);
  EXPECT_GT(drafter.propose(context, policy).size(), 1);
}

TEST_F(Retokenize, TheDraftsEndIsTheTargetsEnd) {
  std::vector<TokenId> written = draft_ids("a the");
  written.push_back(two_.draft_id("<|im_end|>"));
  written.push_back('x');
  EXPECT_THAT(propose(two_.encode("a"), written, 8).tokens,
              ElementsAre(two_.encode(" the")[0], two_.target_id("<|im_end|>")));
  written = draft_ids("a");
  written.push_back(two_.draft_id("<|im_end|>"));
  EXPECT_THAT(propose(two_.encode("a"), written, 8).tokens, ElementsAre(two_.target_id("<|im_end|>")));
}

TEST_F(Retokenize, MaskLeavesTheDraftTextAndEnds) {
  const TokenMask mask = drafting_mask(*two_.draft);
  EXPECT_TRUE(mask.allows('a'));
  EXPECT_TRUE(mask.allows(two_.draft_id("<|im_end|>")));
  EXPECT_FALSE(mask.allows(two_.draft_id("<|im_start|>")));
  EXPECT_FALSE(mask.allows(two_.draft->vocabulary().size()));
}

TEST_F(Retokenize, ConfidenceIsThatOfAllTheTextWhichDecidesAToken) {
  const Proposal hello = propose(two_.encode("a\n"), draft_ids("a\nhello\n"), 6, 0.5);
  // One draft token decides all five; the last token may still change.
  ASSERT_EQ(hello.confidences.size(), 6u);
  EXPECT_FLOAT_EQ(hello.confidences[0], 0.5f);
  for (int i = 1; i < 5; ++i) EXPECT_FLOAT_EQ(hello.confidences[i], 1);
  EXPECT_LT(hello.confidences[5], 0.5f);
  const Proposal the = propose(two_.encode("a"), draft_ids("a the\n"), 2, 0.5);
  EXPECT_FLOAT_EQ(the.confidences[0], 0.25f);  // " t", "he"
}

// Asked before each draft step with what it feeds, and once for each row; nothing more is spent than was allowed.
class Recorder final : public LengthPolicy {
 public:
  void begin_step(const DraftBudget&) override {}
  bool allow_draft_step(const DraftQuestion& question) override {
    steps.push_back(question);
    return static_cast<int>(steps.size()) <= most_steps;
  }
  bool allow_row(const DraftQuestion& question) override {
    rows.push_back(question);
    return static_cast<int>(rows.size()) <= most_rows;
  }
  void observe(const TokenTree&, const Verdict&) override {}
  std::string_view name() const override { return "recorder"; }
  std::vector<DraftQuestion> steps, rows;
  int most_steps = 100, most_rows = 100;
};

TEST_F(Retokenize, AsksTruthfully) {
  for (const int most_steps : {0, 1, 2, 5, 100}) {
    for (const int most_rows : {0, 1, 3, 100}) {
      auto writer = std::make_unique<Writer>(draft_ids("a hello the 日本 inner\n\n  x"), 0.9);
      Writer& draft = *writer;
      draft.feed = 7;
      RetokenizingDrafter drafter(std::move(writer), *two_.target, *two_.draft);
      Context context;
      context.push(two_.encode("a"));
      Recorder policy;
      policy.most_steps = most_steps;
      policy.most_rows = most_rows;
      const TokenTree& tree = drafter.propose(context, policy);
      EXPECT_LE(tree.size() - 1, most_rows);
      EXPECT_LE(static_cast<int>(draft.asked.size()), most_steps + 1);
      for (const DraftQuestion& step : policy.steps) {
        EXPECT_EQ(step.feed, 7);
        EXPECT_LT(step.next_confidence, 0);
        EXPECT_EQ(step.depth, step.nodes);
        EXPECT_EQ(step.parent, step.depth - 1);
      }
      for (std::size_t i = 0; i < policy.rows.size(); ++i) {
        EXPECT_EQ(policy.rows[i].depth, static_cast<int>(i) + 1);
        EXPECT_GE(policy.rows[i].next_confidence, 0);
        EXPECT_LE(policy.rows[i].next_confidence, 1);
      }
      if (most_steps == 0) {
        EXPECT_EQ(tree.size(), 1);
      }
    }
  }
}

TEST_F(Retokenize, ADraftThatNeverFinishesATokenIsStopped) {
  // A run of spaces: one token of the target that only grows.
  Vocabulary spaces =
      tandem::tiny_vocabulary("qwen2", {{" ", " "}, {"  ", "  "}, {"    ", "    "}, {"        ", "        "}});
  const auto target = make_tokenizer(spaces, "spaces.gguf");
  auto writer = std::make_unique<Writer>(std::vector<TokenId>(1000, ' '));
  Writer& draft = *writer;
  RetokenizingDrafter drafter(std::move(writer), *target, *two_.draft);
  Context context;
  context.push('x');
  FixedLength policy(63, kMaxTreeNodes, 0);
  policy.begin_step({kMaxTreeNodes, kMaxTreeNodes});
  drafter.propose(context, policy);
  EXPECT_LT(draft.asked.size(), 64u);
}

TEST_F(Retokenize, WarningsOfTheDraftComeThroughOnce) {
  auto writer = std::make_unique<Writer>(std::vector<TokenId>{});
  writer->warning = "the draft context is full";
  RetokenizingDrafter drafter(std::move(writer), *two_.target, *two_.draft);
  EXPECT_EQ(drafter.take_warning(), "the draft context is full");
  EXPECT_EQ(drafter.take_warning(), "");
}

// Only what differs is fed again: after each step the draft's cache holds what it held, up to the first token that
// changed.
TEST_F(Retokenize, TheDraftsCacheIsKept) {
  TinyModel tiny;
  const auto words = make_tokenizer(tiny_vocabulary(), "tiny.gguf");
  SamplingOptions greedy{.temperature = 0, .top_k = 0, .top_p = 1};
  auto own = std::make_unique<ModelDrafter>(tiny.model, 512, KvType::f16, greedy, Noise{1, 0}, drafting_mask(*words));
  const ModelDrafter& model = *own;
  RetokenizingDrafter drafter(std::move(own), *two_.target, *words);
  Translation translation(*two_.target, *words);
  std::mt19937 random(17);
  Context context;
  context.push(two_.encode("the thin hen in an inn, and the tin hat there on the other inner ring"));
  int drafted = 0, fed_again = 0;
  for (int round = 0; round < 30; ++round) {
    const std::vector<TokenId> before = copy(model.cached());
    Recorder policy;
    policy.most_steps = 4;
    const TokenTree& tree = drafter.propose(context, policy);
    const std::vector<TokenId> read = copy(translation.follow(context.tokens()));
    ASSERT_FALSE(policy.steps.empty());
    const auto shared =
        std::mismatch(before.begin(), before.end(), read.begin(), read.end() - 1).first - before.begin();
    EXPECT_EQ(policy.steps.front().feed, static_cast<int>(read.size()) - shared) << "round " << round;
    if (round > 0) fed_again = std::max(fed_again, policy.steps.front().feed);
    ASSERT_GE(model.cached().size(), read.size());
    EXPECT_TRUE(std::equal(read.begin(), read.end(), model.cached().begin()));
    drafted += tree.size() - 1;
    const int accepted = static_cast<int>(random() % static_cast<unsigned>(tree.size()));
    for (int node = 1; node <= accepted; ++node) context.push(tree.token(node));
    for (const TokenId id : two_.encode(round % 2 ? " the" : "ing")) context.push(id);
  }
  EXPECT_GT(drafted, 30);
  EXPECT_LT(fed_again, 12);
}

}  // namespace
}  // namespace tandem::test
