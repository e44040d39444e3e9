// Caches on disk: a text that goes on from one is the text without it, and only the same run's file is taken.
#include "src/engine/session_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "src/base/error.h"
#include "src/engine/file_hash.h"
#include "tests/engine/session_models.h"

namespace tandem::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr std::size_t kDigest = 64;

class SessionFileTest : public ::testing::TestWithParam<bool>,
                        protected SessionModels {  // whether on the reference backend
 protected:
  SessionFileTest() {
    write_pair();
    path_ = folder_.path() + "/cache.session";
  }

  Session session(const std::vector<std::string>& settings = {}, std::optional<bool> reference = {}) const {
    Options options = Options::from_text(
        "target: {context: 128}\ndraft: {kind: ngram, length: 4}\nsampling: {temperature: 0, seed: 5}\n", "test.yaml");
    for (const std::string& setting :
         {"target.model=" + target_, std::string("runtime.prefill_chunk=16"), std::string("stop.max_tokens=12")}) {
      options.set(setting);
    }
    for (const std::string& setting : settings) options.set(setting);
    return Session(read_config(std::move(options)), reference.value_or(GetParam()));
  }

  static GenerationResult answer(Session& session, const std::string& prompt) {
    Generation generation(session.engine(), session.tokenizer(), session.encode_raw(prompt), session.stop_rules());
    while (generation.advance()) continue;
    return generation.result();
  }

  std::string content() const {
    std::ostringstream text;
    text << std::ifstream(path_, std::ios::binary).rdbuf();
    return text.str();
  }
  void set_content(const std::string& text) const { std::ofstream(path_, std::ios::binary) << text; }
  // With a digest that fits, as somebody would write it who means it.
  void set_sealed(const std::string& text) const {
    const std::string body = text.substr(0, text.size() - kDigest);
    set_content(body + text_sha256(body));
  }
  static std::string replaced(std::string text, const std::string& old, const std::string& with) {
    const std::size_t at = text.find(old);
    EXPECT_NE(at, text.npos) << old;
    return text.replace(at, old.size(), with);
  }

  // Why the file is refused; the engine is as it was.
  std::string refusal(Session& by) const {
    const auto before = by.engine().cache().size();
    try {
      read_session_file(path_, by);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::file);
      EXPECT_EQ(by.engine().cache().size(), before);
      EXPECT_THAT(error.what(), StartsWith(path_ + ": "));
      return error.what();
    }
    return "accepted";
  }
  std::string refusal(const std::vector<std::string>& settings = {}, std::optional<bool> reference = {}) const {
    Session by = session(settings, reference);
    return refusal(by);
  }

  std::string path_;
};

const std::string kPrompt = "the hat in the inn and the hen in the hat";

TEST_P(SessionFileTest, TextIsTheSameAndWhatTwoPromptsBeginWithIsNotReadAgain) {
  const std::vector<std::vector<std::string>> all_settings{
      {},
      {"draft.model=" + draft_, "draft.kind=model"},
      {"draft.kind=recycle"},
      {"draft.kind=none"},
      {"sampling.temperature=1"},
      {"sampling.temperature=1", "draft.model=" + draft_, "verify.rule=block"},
      {"sampling.temperature=1", "verify.rule=coupled", "draft.kind=hybrid"}};
  for (const std::vector<std::string>& settings : all_settings) {
    SCOPED_TRACE(::testing::PrintToString(settings));
    std::filesystem::remove(path_);
    std::string known;  // what the file stands for
    for (const std::string& prompt :
         {kPrompt, kPrompt, kPrompt + " then the inn", kPrompt.substr(0, 20), std::string("Zz"), kPrompt}) {
      Session plain = session(settings);
      const GenerationResult truth = answer(plain, prompt);
      Session with = session(settings);
      const int held = read_session_file(path_, with);
      EXPECT_EQ(held > 0, !known.empty());
      const GenerationResult result = answer(with, prompt);
      EXPECT_EQ(result.ids, truth.ids) << prompt;
      EXPECT_EQ(result.text, truth.text);
      if (known == prompt) {
        EXPECT_EQ(result.cached_tokens, result.prompt_tokens - 1);
      } else if (prompt.starts_with(known) && !known.empty()) {
        EXPECT_GE(result.cached_tokens, static_cast<int>(with.encode_raw(known).size()) - 1);
      }
      if (prompt == "Zz") {
        EXPECT_EQ(result.cached_tokens, 0);
      }
      EXPECT_EQ(write_session_file(path_, with), with.engine().cache().size());
      known = prompt;
    }
  }
}

TEST_P(SessionFileTest, TheRestoredCacheIsTheWrittenOneBitForBit) {
  Session first = session();
  answer(first, kPrompt);
  write_session_file(path_, first);
  Session second = session();
  EXPECT_EQ(read_session_file(path_, second), first.engine().cache().size());
  for (int layer = 0; layer < first.target().spec.layers; ++layer) {
    EXPECT_EQ(first.engine().cache().snapshot(layer), second.engine().cache().snapshot(layer));
  }
  const std::string before = content();
  write_session_file(path_, second);
  EXPECT_EQ(content(), before);
}

// Layers with a sliding window hold the last places alone: what is left of them is enough for the same prompt and for
// one that goes on from it, not for one that ends long before.
TEST_P(SessionFileTest, SlidingWindowsGoOnWhereTheyCan) {
  TinyOptions options = small_options();
  options.architecture = "gemma3";
  options.window = 8;
  target_ = write_tiny_model(folder_, "sliding.gguf", options);
  const std::vector<std::string> settings{"target.context=400"};
  std::string text;
  while (text.size() < 240) text += kPrompt + " ";
  const std::string longer = text + "then the inn", early = text.substr(0, 40);
  std::vector<int> cached;
  for (const std::string& prompt : {text, text, longer, early, early}) {
    Session plain = session(settings), with = session(settings);
    const GenerationResult truth = answer(plain, prompt);
    ASSERT_TRUE(plain.engine().cache().layer(0).ring);
    read_session_file(path_, with);
    const GenerationResult result = answer(with, prompt);
    EXPECT_EQ(result.ids, truth.ids);
    for (int layer = 0; layer < plain.target().spec.layers; ++layer) {
      EXPECT_EQ(with.engine().cache().snapshot(layer), plain.engine().cache().snapshot(layer)) << layer;
    }
    write_session_file(path_, with);
    cached.push_back(result.cached_tokens);
  }
  Session last = session(settings);
  const int whole = static_cast<int>(last.encode_raw(text).size());
  const int small = static_cast<int>(last.encode_raw(early).size());
  ASSERT_GT(whole, 100);  // longer than a ring
  EXPECT_EQ(cached[0], 0);
  EXPECT_EQ(cached[1], whole - 1);
  EXPECT_GE(cached[2], whole - 2);
  EXPECT_EQ(cached[3], 0);
  EXPECT_EQ(cached[4], small - 1);
}

TEST_P(SessionFileTest, IsReadableByItsOwnerAloneAndStandsAlone) {
  Session first = session();
  EXPECT_EQ(read_session_file(path_, first), 0);  // there is none yet
  answer(first, kPrompt);
  std::filesystem::create_directory(folder_.path() + "/own");
  path_ = folder_.path() + "/own/cache.session";
  write_session_file(path_, first);
  write_session_file(path_, first);
  struct stat status {};
  ASSERT_EQ(::stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_.path() + "/own"), {}), 1);
}

TEST_P(SessionFileTest, AnotherRunsCacheIsRefusedWithWhatDiffers) {
  Session first = session();
  answer(first, kPrompt);
  write_session_file(path_, first);
  const std::string good = content();
  EXPECT_EQ(refusal(), "accepted");
  if (!GetParam()) {
    EXPECT_THAT(refusal({"runtime.kv_cache=f32"}),
                AllOf(HasSubstr("kv_cache f16 (here f32)"), Not(HasSubstr("model")), Not(HasSubstr("version"))));
  }
  EXPECT_THAT(refusal({}, !GetParam()), HasSubstr("backend "));
  EXPECT_THAT(refusal({"target.model=" + draft_}), AllOf(HasSubstr(file_sha256(target_)), HasSubstr("model ")));
  EXPECT_THAT(refusal({"target.context=16"}), HasSubstr("expected at most 16 tokens (target.context), got "));
  set_sealed(replaced(good, std::string("\"version\":\"") + TANDEM_VERSION, "\"version\":\"0.0.9"));
  EXPECT_THAT(refusal(), HasSubstr(std::string("version 0.0.9 (here ") + TANDEM_VERSION));
  set_sealed(replaced(good, "\"tokenizer\":\"gpt2/", "\"tokenizer\":\"spm/"));
  EXPECT_THAT(refusal(), HasSubstr("tokenizer spm/gpt-2 (here gpt2/gpt-2)"));
  set_sealed(replaced(good, "\"template\":\"none\"", "\"template\":\"else\""));
  EXPECT_THAT(refusal(), HasSubstr("template else (here none)"));
  set_sealed(replaced(good, "\"template\":\"none\",", ""));
  EXPECT_THAT(refusal(), HasSubstr("template nothing (here none)"));
  set_content(good);
  EXPECT_EQ(refusal(), "accepted");
}

// Keys are stored rotated, so a cache of long factors is of no use where short ones hold.
TEST_P(SessionFileTest, AContextWithOtherRopeFactorsIsRefused) {
  TinyOptions options = small_options();
  options.more = [](GgufBuilder& file) {
    file.set("qwen2.rope.scaling.original_context_length", std::uint32_t{64});
    file.tensor_f32("rope_factors_short.weight", {8}, std::vector<float>(8, 1));
    file.tensor_f32("rope_factors_long.weight", {8}, std::vector<float>(8, 3));
  };
  write_pair(options);
  Session writer = session({"target.context=64"});
  answer(writer, "the tin hat");
  ASSERT_GT(write_session_file(path_, writer), 0);
  Session shorter = session({"target.context=48"}), longer = session({"target.context=65"});
  EXPECT_EQ(refusal(shorter), "accepted");
  EXPECT_THAT(refusal(longer), AllOf(HasSubstr("rope"), HasSubstr("short"), HasSubstr("long")));
}

TEST_P(SessionFileTest, ACutOrChangedFileIsRefused) {
  Session first = session();
  answer(first, "the hat");
  write_session_file(path_, first);
  const std::string good = content();
  Session by = session();
  const GenerationResult truth = answer(by, kPrompt);
  // All of the header, and every few bytes behind it.
  const std::size_t header = good.find('\n', good.find('\n') + 1) + 1;
  for (std::size_t i = 0; i < good.size(); i += i < header + 8 ? 1 : 7) {
    set_content(good.substr(0, i));
    EXPECT_NE(refusal(by), "accepted") << "cut at " << i;
    std::string changed = good;
    changed[i] = static_cast<char>(changed[i] ^ 4);
    set_content(changed);
    EXPECT_NE(refusal(by), "accepted") << "changed at " << i;
  }
  set_content(good.substr(0, good.size() - 5));
  EXPECT_THAT(refusal(by), HasSubstr("cut: expected "));
  set_content(good + "x");
  EXPECT_THAT(refusal(by), HasSubstr("changed: expected "));
  set_content("a letter to a friend");
  EXPECT_THAT(refusal(by),
              HasSubstr("expected a session file, which begins with \"tandem session 1\", got \"a letter"));
  EXPECT_EQ(answer(by, kPrompt).ids, truth.ids);
}

TEST_P(SessionFileTest, CountsAndTokensThatCannotBeAreRefused) {
  Session first = session();
  answer(first, "the hat");
  write_session_file(path_, first);
  const std::string good = content();
  const int held = first.engine().cache().size();
  const std::string tokens = "\"tokens\":" + std::to_string(held);
  for (const char* count : {"-1", "1e3", "\"9\"", "null"}) {
    set_sealed(replaced(good, tokens, std::string("\"tokens\":") + count));
    EXPECT_THAT(refusal(), HasSubstr("header: tokens: expected a count, got "));
  }
  for (const char* count : {"18446744073709551615", "4611686018427387904", "0"}) {
    set_sealed(replaced(good, tokens, std::string("\"tokens\":") + count));
    EXPECT_THAT(refusal(), HasSubstr("bytes behind the header"));
  }
  // One token more, its four bytes taken off the cache's: sealed and of the right size.
  const std::size_t bytes = first.engine().cache().image_bytes(held);
  set_sealed(replaced(replaced(good, tokens, "\"tokens\":" + std::to_string(held + 1)),
                      "\"cache_bytes\":" + std::to_string(bytes), "\"cache_bytes\":" + std::to_string(bytes - 4)));
  EXPECT_THAT(refusal(), ::testing::AnyOf(HasSubstr("bytes of cache for"), HasSubstr("expected 0..")));
  std::string odd = good;
  const std::size_t at = odd.find('\n', odd.find('\n') + 1) + 1;
  odd.replace(at + 4, 4, std::string("\xFF\xFF\xFF\x7F"));
  set_sealed(odd);
  EXPECT_THAT(refusal(), HasSubstr("token 1: expected 0..111, got 2147483647"));
}

INSTANTIATE_TEST_SUITE_P(Backends, SessionFileTest, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "reference" : "cpu"; });

}  // namespace
}  // namespace tandem::test
