// Turns of a chat: what a conversation that keeps its cache answers is what a fresh engine answers to the same
// messages, and no more than the new ids are read for it.
#include "src/engine/conversation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"
#include "src/engine/generation.h"
#include "tests/engine/engine_rig.h"

namespace tandem::test {
namespace {

using ::testing::HasSubstr;
using Messages = std::vector<ChatMessage>;

constexpr TokenId kOpen = 106, kClose = 107;  // <|im_start|> and <|im_end|> of the tiny vocabulary

class ConversationTest : public ::testing::Test {
 protected:
  std::vector<TokenId> words(const std::string& text) const { return tokenizer_->encode(text, Specials::literal); }

  // Each message between the marks behind a letter for its role, then what asks for the next.
  std::vector<TokenId> chat_ids(const Messages& messages) const {
    std::vector<TokenId> ids;
    const auto add = [&](const std::string& text) {
      const std::vector<TokenId> more = words(text);
      ids.insert(ids.end(), more.begin(), more.end());
    };
    for (const ChatMessage& message : messages) {
      ids.push_back(kOpen);
      add(message.role.substr(0, 1));
      add(message.content);
      ids.push_back(kClose);
    }
    ids.push_back(kOpen);
    add("a");
    return ids;
  }
  Conversation::Encode plain() const {
    return [this](const Messages& messages) { return chat_ids(messages); };
  }
  // As templates that leave thoughts out of earlier answers: of each answer but its last letters nothing stays.
  Conversation::Encode forgetful() const {
    return [this](Messages messages) {
      for (ChatMessage& message : messages) {
        if (message.role == "assistant") message.content.erase(0, message.content.size() / 2);
      }
      return chat_ids(messages);
    };
  }
  // As templates that write the system prompt into the last user's message.
  Conversation::Encode moving() const {
    return [this](Messages messages) {
      if (messages.front().role == "system") {
        messages.back().content = messages.front().content + messages.back().content;
        messages.erase(messages.begin());
      }
      return chat_ids(messages);
    };
  }

  GenerationResult answer(Engine& engine, const TurnPrompt& prompt, int tokens) const {
    Generation generation(engine, *tokenizer_, prompt.ids, {.end_ids = {kClose}, .max_tokens = tokens},
                          prompt.dropped_tokens);
    while (generation.advance()) continue;
    return generation.result();
  }

  // What the cache holds is what a prefill of its tokens gives, bit for bit.
  static void expect_true_cache(Rig& rig, const Engine& engine) {
    const std::span<const TokenId> held = engine.context().tokens().first(engine.cache().size());
    EXPECT_EQ(Rig::layers(engine.cache(), rig.target().spec().layers),
              rig.prefilled(rig.target(), held, engine.cache().capacity()));
  }

  std::unique_ptr<Tokenizer> tokenizer_ = make_tokenizer(tiny_vocabulary(), "tiny");
};

int shared(std::span<const TokenId> a, std::span<const TokenId> b) {
  return static_cast<int>(std::ranges::mismatch(a, b).in1 - a.begin());
}

const std::vector<std::string> kTurns{"the hat in the inn", "a the hat", "then the hen ran in", "the inn"};

struct Sampling {
  const char* name;
  double temperature;
  const char* rule;
};

TEST_F(ConversationTest, EachTurnIsAnsweredAsByAFreshEngineAndReadsWhatIsNew) {  // B22, B34
  Rig& rig = Rig::shared("cpu");
  for (const Sampling& sampling : {Sampling{"greedy", 0, "rejection"}, Sampling{"coupled", 1, "coupled"}}) {
    for (const char* kind : {"none", "model", "ngram", "recycle", "hybrid", "reuse"}) {
      for (const auto& [encoding, encode] :
           {std::pair("plain", plain()), std::pair("forgetful", forgetful()), std::pair("moving", moving())}) {
        SCOPED_TRACE(fmt::format("{} {} {}", sampling.name, kind, encoding));
        RigOptions o{.length = 5, .capacity = 256, .seed = 3, .rule = sampling.rule};
        o.sampling.temperature = sampling.temperature;
        Engine engine = rig.engine(rig.drafter(kind, o), o);
        Conversation conversation("an inn", encode, {.context = 256, .answer = 12});
        for (const std::string& turn : kTurns) {
          const TurnPrompt prompt = conversation.ask(turn);
          EXPECT_FALSE(prompt.dropped);
          const std::span<const TokenId> held = engine.context().tokens().first(engine.cache().size());
          const int known = std::min(shared(held, prompt.ids), static_cast<int>(prompt.ids.size()) - 1);
          const GenerationResult result = answer(engine, prompt, 12);
          EXPECT_EQ(result.cached_tokens, known);
          Engine fresh = rig.engine(rig.drafter("none", o), o);
          const GenerationResult truth = answer(fresh, prompt, 12);
          EXPECT_EQ(result.ids, truth.ids);
          EXPECT_EQ(result.text, truth.text);
          expect_true_cache(rig, engine);
          conversation.answer(result.text);
        }
      }
    }
  }
}

// Nothing that is in the cache is read again where an answer's text becomes the ids that it came from.
TEST_F(ConversationTest, TurnsOfAPlainTemplateReadTheNewMessageAlone) {
  Rig& rig = Rig::shared("cpu");
  int turns = 0;
  for (const char* system : {"an inn", "a hen", "the hat", "be brief", "xyz"}) {
    Engine engine = rig.engine(rig.drafter("ngram"), {.capacity = 256});
    Conversation conversation(system, plain(), {.context = 256, .answer = 8});
    bool same_ids = true;
    for (const std::string& turn : kTurns) {
      const TurnPrompt prompt = conversation.ask(turn);
      const int held = engine.cache().size();
      const GenerationResult result = answer(engine, prompt, 8);
      if (same_ids) {
        EXPECT_EQ(result.cached_tokens, held);
        turns += held > 0;
      }
      std::vector<TokenId> ids = result.ids;
      if (ids.back() == kClose) ids.pop_back();
      same_ids = same_ids && words(result.text) == ids;
      conversation.answer(result.text);
    }
  }
  EXPECT_GT(turns, 5);
}

TEST_F(ConversationTest, ARefusedMessageChangesNothing) {
  Conversation conversation("s", plain(), {.context = 40, .answer = 8});
  conversation.ask("hi");
  conversation.answer("ho");
  for (const bool drop : {false, true}) {
    Conversation limited("s", plain(), {.context = 40, .answer = 8, .drop = drop});
    limited.restore(conversation.state());
    try {
      limited.ask(std::string(60, 'z'));
      ADD_FAILURE() << "accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::input);
      EXPECT_THAT(error.what(), HasSubstr(drop ? "no older turn is left to drop" : "runtime.context_full"));
      Messages kept{{"system", "s"}, {"user", "hi"}, {"assistant", "ho"}, {"user", std::string(60, 'z')}};
      if (drop) kept.erase(kept.begin() + 1, kept.begin() + 3);
      EXPECT_THAT(error.what(), HasSubstr(fmt::format("prompt: {} tokens", chat_ids(kept).size())));
      EXPECT_THAT(error.what(), HasSubstr("a context of 40 tokens"));
    }
    EXPECT_EQ(limited.state().messages.size(), 2u);
    EXPECT_EQ(limited.state().first_kept, 0u);
    EXPECT_EQ(limited.state().dropped_tokens, 0u);
  }
}

TEST_F(ConversationTest, AMessageCanBeTakenBackAndAResetKeepsTheSystemPrompt) {
  Conversation conversation("be brief", plain(), {.context = 100, .answer = 8});
  const std::vector<TokenId> first = conversation.ask("hi").ids;
  conversation.take_back();
  EXPECT_EQ(conversation.ask("hi").ids, first);
  conversation.answer("ho");
  conversation.reset();
  EXPECT_EQ(conversation.ask("hi").ids, first);
  EXPECT_EQ(first, chat_ids({{"system", "be brief"}, {"user", "hi"}}));
  conversation.set_system("");
  conversation.reset();
  EXPECT_EQ(conversation.ask("hi").ids, chat_ids({{"user", "hi"}}));
}

class FullContext : public ConversationTest {
 protected:
  static constexpr int kContext = 80, kAnswer = 10;
  Conversation conversation(int answer = kAnswer) const {
    return {"an inn", plain(), {.context = kContext, .answer = answer, .drop = true}};
  }
};

TEST_F(FullContext, TheOldestTurnsMakeRoomAndTheSystemPromptStays) {
  Conversation c = conversation();
  std::vector<TokenId> system = chat_ids({{"system", "an inn"}});
  system.pop_back();  // all messages begin with the same mark
  Messages all{{"system", "an inn"}};
  int drops = 0;
  std::uint32_t lost = 0;
  for (int turn = 0; turn < 12; ++turn) {
    const std::string message = fmt::format("turn {} {}", turn, std::string(static_cast<std::size_t>(turn), 'x'));
    all.push_back({"user", message});
    const TurnPrompt prompt = c.ask(message);
    EXPECT_LE(static_cast<int>(prompt.ids.size()) + kAnswer, kContext);
    EXPECT_EQ(shared(prompt.ids, system), static_cast<int>(system.size()));
    // Nothing more than needed: with one turn more it would not fit.
    const ConversationState& state = c.state();
    Messages kept{{"system", "an inn"}};
    kept.insert(kept.end(), state.messages.begin() + static_cast<std::ptrdiff_t>(state.first_kept),
                state.messages.end());
    EXPECT_EQ(prompt.ids, chat_ids(kept));
    EXPECT_EQ(state.messages[state.first_kept].role, "user");
    if (prompt.dropped) {
      ++drops;
      const DroppedTurns& d = *prompt.dropped;
      EXPECT_EQ(d.messages, 2 * d.turns);
      EXPECT_EQ(d.ids, static_cast<int>(prompt.ids.size()));
      EXPECT_GE(d.front, static_cast<int>(system.size()));
      EXPECT_TRUE(d.one_cut);
      lost += static_cast<std::uint32_t>(d.tokens);
      kept.insert(kept.begin() + 1, state.messages.begin() + static_cast<std::ptrdiff_t>(state.first_kept) - 2,
                  state.messages.begin() + static_cast<std::ptrdiff_t>(state.first_kept));
      EXPECT_GT(static_cast<int>(chat_ids(kept).size()) + kAnswer, kContext);
    }
    // Positions of noise go on as if nothing had been dropped.
    EXPECT_EQ(prompt.dropped_tokens, lost);
    EXPECT_EQ(prompt.dropped_tokens + prompt.ids.size(), chat_ids(all).size());
    c.answer("so be it");
    all.push_back({"assistant", "so be it"});
  }
  EXPECT_GT(drops, 3);
  EXPECT_EQ(c.state().messages.size(), 24u);  // what was dropped is still known
}

TEST_F(FullContext, RoomForTheAnswerIsAtMostHalfTheContext) {
  Conversation c = conversation(100000);
  EXPECT_FALSE(c.ask("some message").dropped);
  c.answer("some answer");
  const TurnPrompt prompt = c.ask("some other");
  EXPECT_LE(static_cast<int>(prompt.ids.size()), kContext / 2);
  EXPECT_TRUE(prompt.dropped);
}

TEST_F(FullContext, DroppingChangesNoTextWithDrafts) {
  Rig& rig = Rig::shared("cpu");
  for (const Sampling& sampling : {Sampling{"greedy", 0, "rejection"}, Sampling{"coupled", 1, "coupled"}}) {
    std::vector<std::vector<TokenId>> truth;
    for (const char* kind : {"none", "model", "ngram", "recycle", "hybrid"}) {
      SCOPED_TRACE(fmt::format("{} {}", sampling.name, kind));
      RigOptions o{.length = 4, .capacity = kContext, .seed = 9, .rule = sampling.rule};
      o.sampling.temperature = sampling.temperature;
      Engine engine = rig.engine(rig.drafter(kind, o), o);
      Conversation c = conversation();
      std::vector<std::vector<TokenId>> answers;
      int drops = 0;
      for (int turn = 0; turn < 8; ++turn) {
        const TurnPrompt prompt = c.ask(kTurns[static_cast<std::size_t>(turn) % kTurns.size()]);
        drops += prompt.dropped.has_value();
        const GenerationResult result = answer(engine, prompt, kAnswer);
        EXPECT_EQ(engine.context().position(), prompt.dropped_tokens + prompt.ids.size() + result.ids.size());
        expect_true_cache(rig, engine);
        answers.push_back(result.ids);
        c.answer(result.text);
      }
      EXPECT_GT(drops, 2);
      if (truth.empty()) truth = answers;
      EXPECT_EQ(answers, truth);
    }
  }
}

// A template may move the system prompt: then more changes than what was dropped, and nothing says otherwise.
TEST_F(FullContext, AMovedSystemPromptIsKeptToo) {
  Conversation c("an inn", moving(), {.context = kContext, .answer = kAnswer, .drop = true});
  int drops = 0;
  for (int turn = 0; turn < 6; ++turn) {
    const TurnPrompt prompt = c.ask("a message");
    std::vector<TokenId> end = chat_ids({{"user", "an inna message"}});
    EXPECT_TRUE(std::equal(end.rbegin(), end.rend(), prompt.ids.rbegin()));
    if (prompt.dropped) {
      ++drops;
      EXPECT_EQ(prompt.dropped->turns, 1);
    }
    c.answer("so be it");
  }
  EXPECT_GT(drops, 1);
}

// The same ids behind dropped turns draw other noise than at the front of a conversation.
TEST_F(FullContext, DroppedTurnsCountForTheNoise) {
  Rig& rig = Rig::shared("cpu");
  RigOptions o{.capacity = kContext, .seed = 9, .rule = "coupled"};
  o.sampling.temperature = 1.5;
  TurnPrompt prompt{.ids = chat_ids({{"user", "the hat"}}), .dropped_tokens = 0, .dropped = {}};
  std::vector<std::vector<TokenId>> answers;
  for (const std::uint32_t dropped : {0u, 1u, 40u, 0u}) {
    prompt.dropped_tokens = dropped;
    Engine engine = rig.engine(rig.drafter("none", o), o);
    answers.push_back(answer(engine, prompt, 20).ids);
  }
  EXPECT_NE(answers[0], answers[1]);
  EXPECT_NE(answers[0], answers[2]);
  EXPECT_EQ(answers[0], answers[3]);
}

// Each token of an answer is told as what it is: the target's own, or a draft of its source.
TEST_F(ConversationTest, OriginsTellWhatDraftsWrote) {
  Rig& rig = Rig::shared("cpu");
  const RigOptions o{.length = 6, .capacity = 128};
  for (const char* kind : {"none", "ngram", "model"}) {
    Engine engine = rig.engine(rig.drafter(kind, o), o);
    const std::vector<TokenId> prompt = chat_ids({{"user", "the hat the hat the hat"}});
    Generation generation(engine, *tokenizer_, prompt, {.max_tokens = 40});
    while (generation.advance()) continue;
    const GenerationResult& result = generation.result();
    ASSERT_EQ(generation.origins().size(), result.ids.size());
    std::size_t end = 0;
    std::map<DraftSource, int> counts;
    for (std::size_t i = 0; i < result.ids.size(); ++i) {
      end += tokenizer_->bytes(result.ids[i]).size();
      EXPECT_EQ(generation.origins()[i].end, end);
      ++counts[generation.origins()[i].source];
    }
    EXPECT_EQ(end, result.text.size());
    const Metrics& m = result.metrics;
    EXPECT_EQ(counts[DraftSource::ngram], m.by_source[static_cast<int>(DraftSource::ngram)].accepted);
    EXPECT_EQ(counts[DraftSource::model], m.by_source[static_cast<int>(DraftSource::model)].accepted);
    EXPECT_EQ(counts[DraftSource::none], m.steps + 1);
    EXPECT_EQ(std::string(kind) == "none", m.total.accepted == 0);
  }
}

}  // namespace
}  // namespace tandem::test
