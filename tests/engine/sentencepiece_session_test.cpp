// Whole sessions of models with a SentencePiece vocabulary that has gaps, padding rows and several ends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "src/base/error.h"
#include "src/engine/scoring.h"
#include "src/engine/session.h"
#include "tests/engine/session_models.h"
#include "tests/text/smollm2_template.h"
#include "tests/text/tiny_pieces.h"

namespace tandem::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr TokenId kBos = 1;
constexpr int kPadding = 9;  // rows of the embedding past the target's vocabulary

// Pieces with unused ones among and behind them, and ends of sequence (2), turn and message.
Vocabulary gapped() {
  Vocabulary v = tandem::tiny_pieces({" the", "he", "in", "t", "h", "e", "i", "n", "a", " "});
  add_piece(v, "<unused0>", TokenType::unused);
  v.eot = add_piece(v, "<end_of_turn>", TokenType::control);
  v.eom = add_piece(v, "<|eom_id|>", TokenType::control);
  add_piece(v, "the", TokenType::normal, -11);
  add_piece(v, "<unused1>", TokenType::unused);
  return v;
}

class SentencePieceSession : public ::testing::TestWithParam<bool>, protected SessionModels {
 protected:
  SentencePieceSession() {
    target_ = write("target.gguf", vocabulary_, vocabulary_.size() + kPadding, 0);
    draft_ = write("draft.gguf", vocabulary_, vocabulary_.size(), 0.3);
  }

  bool masked(TokenId id) const { return !vocabulary_.usable(id); }

  // Rows of ids that may never be drawn outweigh all others: those with an even id where the final norm's outputs have
  // a positive sum, the odd ones elsewhere.
  std::string write(const std::string& name, const Vocabulary& vocabulary, int rows, double noise) {
    TinyOptions options = small_options();
    options.format = Format::f32;
    options.vocabulary = vocabulary;
    options.rows = rows;
    options.noise = noise;
    options.chat_template = kSmolLm2;
    options.edit = [&vocabulary, width = options.width](std::string_view tensor, std::string& data) {
      if (tensor != "output.weight") return;
      const std::size_t row_bytes = static_cast<std::size_t>(width) * sizeof(float);
      for (TokenId id = 0; id < static_cast<TokenId>(data.size() / row_bytes); ++id) {
        if (vocabulary.usable(id)) continue;
        const std::vector<float> heavy(static_cast<std::size_t>(width), id % 2 == 0 ? 100.0f : -100.0f);
        std::memcpy(data.data() + static_cast<std::size_t>(id) * row_bytes, heavy.data(), row_bytes);
      }
    };
    return write_tiny_model(folder_, name, options);
  }

  Session session(const std::vector<std::string>& settings = {}) const {
    Options options = Options::from_text(
        "target: {context: 256}\ndraft: {kind: none, length: 4}\nsampling: {temperature: 0, seed: 5}\n"
        "prompt: {chat: false}\nruntime: {threads: 1}\nstop: {max_tokens: 60}\n",
        "test.yaml");
    options.set("target.model=" + target_);
    for (const std::string& setting : settings) options.set(setting);
    return Session(read_config(std::move(options)), GetParam());
  }
  static GenerationResult answer(Session& session, bool may_end = true) {
    StopRules rules = session.stop_rules();
    if (!may_end) rules.end_ids.clear();
    Generation generation(session.engine(), session.tokenizer(), session.encode_raw("the hat in the hat"), rules);
    while (generation.advance()) continue;
    return generation.result();
  }

  const Vocabulary vocabulary_ = gapped();
};

TEST_P(SentencePieceSession, PaddingAndUnusedPiecesAreNeverDrawnNorDrafted) {  // B07
  for (const std::string temperature : {"0", "5"}) {
    for (const std::vector<std::string>& drafts :
         std::vector<std::vector<std::string>>{{"draft.kind=none"},
                                               {"draft.kind=ngram", "draft.ngram.min_match=1"},
                                               {"draft.kind=recycle"},
                                               {"draft.kind=model", "draft.model=" + draft_},
                                               {"draft.kind=hybrid", "draft.model=" + draft_}}) {
      std::vector<std::string> settings = drafts;
      settings.insert(settings.end(), {"sampling.temperature=" + temperature, "sampling.top_k=0", "sampling.top_p=1",
                                       "sampling.logprobs=20"});
      Session tested = session(settings);
      const GenerationResult result = answer(tested, false);
      ASSERT_EQ(result.ids.size(), 60u);
      for (const TokenId id : result.ids) EXPECT_FALSE(masked(id)) << id << " at " << temperature << " " << drafts[0];
      for (const TokenLogprobs& token : result.logprobs) {
        EXPECT_TRUE(std::isfinite(token.drawn.logprob));
        for (const auto& alternative : token.top()) EXPECT_FALSE(masked(alternative.id));
      }
    }
  }
}

// A score is the model's own: rows that are never drawn have their part in the sum.
TEST_P(SentencePieceSession, ScoresLeaveMaskedRowsIn) {
  const Session loaded = session();
  const std::vector<TokenId> ids = loaded.encode_raw("the hat in the hat");
  ModelFile model = open_model(target_);
  ThreadPool pool(1);
  const std::unique_ptr<Backend> backend = make_backend(GetParam() ? "reference" : "cpu", pool);
  const Scores scores = score(model, *backend, ids);
  std::size_t heavy = 0;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (!masked(scores.argmax[i])) continue;
    ++heavy;
    EXPECT_EQ(loaded.tokenizer().bytes(scores.argmax[i]), "");
    if (i + 1 < ids.size()) {
      EXPECT_LE(scores.logprobs[i + 1], -std::log(2));  // the masked row has as much of the sum, or more
    }
  }
  EXPECT_GT(heavy, ids.size() / 2);
  EXPECT_EQ(scores.last_logits.size(), static_cast<std::size_t>(vocabulary_.size() + kPadding));
}

TEST_P(SentencePieceSession, NoTextGivesAndNoTokenOutsideHasText) {
  const Session loaded = session();
  const Tokenizer& words = loaded.tokenizer();
  for (const Specials specials : {Specials::literal, Specials::parse}) {
    const std::vector<TokenId> ids = words.encode("<unused0>the<unused1>", specials);
    for (const TokenId id : ids) EXPECT_FALSE(masked(id));
    EXPECT_EQ(words.decode(ids, false, Place::begins), "<unused0>the<unused1>");
  }
  for (TokenId id = -1; id < vocabulary_.size() + kPadding; ++id) {
    if (masked(id)) {
      EXPECT_EQ(words.decode({id}), "") << id;
    }
  }
  EXPECT_EQ(words.bytes(vocabulary_.size(), true), "");
}

TEST_P(SentencePieceSession, EveryEndIdEndsAnAnswerWithoutText) {  // B11
  EXPECT_THAT(session().stop_rules().end_ids, ElementsAre(*vocabulary_.eos, *vocabulary_.eot, *vocabulary_.eom));
  for (const TokenId end : {*vocabulary_.eos, *vocabulary_.eot, *vocabulary_.eom}) {
    for (const std::string kind : {"none", "ngram", "model"}) {
      std::vector<std::string> settings{"draft.kind=" + kind,
                                        "sampling.logit_bias={" + std::to_string(end) + ": 10000}"};
      if (kind == "model") settings.push_back("draft.model=" + draft_);
      Session tested = session(settings);
      const GenerationResult result = answer(tested);
      EXPECT_THAT(result.ids, ElementsAre(end));
      EXPECT_EQ(result.stop_reason, StopReason::stop);
      EXPECT_EQ(result.text, "");
    }
  }
}

TEST_P(SentencePieceSession, BosStandsInFrontOnceHoweverThePromptBegins) {  // B02
  Session loaded = session({"prompt.chat=true"});
  const auto once_in_front = [](const std::vector<TokenId>& ids) {
    return !ids.empty() && ids.front() == kBos && std::count(ids.begin(), ids.end(), kBos) == 1;
  };
  for (const char* prompt : {"the", "<s>the", "", "<s>"})
    EXPECT_TRUE(once_in_front(loaded.encode_raw(prompt))) << prompt;
  EXPECT_EQ(loaded.encode_raw("the"), loaded.encode_raw("<s>the"));
  EXPECT_TRUE(once_in_front(loaded.encode_chat({{"user", "the"}})));
  EXPECT_TRUE(once_in_front(loaded.encode_chat({{"system", "<s>"}, {"user", "<s>"}})));  // text, not the token
  const std::vector<ChatSegment> writes_bos = {{"<s>", true}, {"the", false}, {"<end_of_turn>", true}};
  const std::vector<TokenId> ids = encode_chat(loaded.tokenizer(), writes_bos);
  EXPECT_TRUE(once_in_front(ids));
  EXPECT_EQ(ids.back(), *vocabulary_.eot);
}

TEST_P(SentencePieceSession, APairOfOtherPiecesIsRefusedWithTheId) {  // B08
  Vocabulary other = vocabulary_;
  std::swap(other.tokens[260], other.tokens[261]);
  const std::string draft = write("other.gguf", other, other.size(), 0);
  try {
    session({"draft.kind=model", "draft.model=" + draft});
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("other.gguf: its vocabulary of 274 tokens is not that of target.gguf (274 "
                                        "tokens): the first difference is id 260: expected \"he\", got \"in\""));
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, SentencePieceSession, ::testing::Values(true, false),
                         [](const auto& info) { return info.param ? "reference" : "cpu"; });

}  // namespace
}  // namespace tandem::test
