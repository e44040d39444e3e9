// Masks of a real vocabulary: all its tokens are tried one by one in states that random answers lead to.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "src/engine/model_files.h"
#include "src/sample/grammar/gbnf.h"
#include "src/sample/grammar/json_schema.h"
#include "src/sample/grammar/token_masks.h"
#include "tests/model_folder.h"

namespace tandem::test {
namespace {

// Any of the tokens that a mask allows, of which there is one at least.
TokenId any_of(const TokenMask& mask, std::mt19937_64& random) {
  std::uint64_t count = 0;
  for (const TokenRun& run : mask.runs()) count += static_cast<std::uint64_t>(run.end - run.begin);
  auto place = static_cast<TokenId>(random() % count);
  for (const TokenRun& run : mask.runs()) {
    if (place < run.end - run.begin) return run.begin + place;
    place -= run.end - run.begin;
  }
  return -1;
}

TEST(VocabularyMasks, HoldWhatTheAutomatonTakesTokenByToken) {
  constexpr int kMasks = 60;  // of each grammar
  const ModelFile model = open_model(model_path("smollm2-135m-instruct-q4_1.gguf"));
  const Vocabulary& vocabulary = model.tokenizer->vocabulary();
  const TokenMask usable = usable_tokens(model);
  const std::vector<TokenId> ends = end_ids(vocabulary);
  const auto trie = std::make_shared<const VocabularyTrie>(*model.tokenizer, usable);
  for (const Grammar& grammar :
       {any_json_grammar(), parse_gbnf("root ::= [^\\x00-@[-`{-\\x7f]+ (\" \" .{1,40})? \".\"", "letters"),
        parse_gbnf("root ::= word (\", \" word){2,9} \"\\n\"\nword ::= [A-Za-z]{1,12} | [0-9]{1,3} \"%\"", "words")}) {
    TokenMasks masks(grammar, "test", trie, usable, ends);
    Automaton& automaton = masks.automaton();
    std::mt19937_64 random(1);
    int state = automaton.start();
    for (int i = 0; i < kMasks; ++i) {
      const TokenMask mask = masks.mask(state);
      for (TokenId id = 0; id < vocabulary.size(); ++id) {
        const bool is_end = std::find(ends.begin(), ends.end(), id) != ends.end();
        const bool is_plain = usable.allows(id) && is_text(vocabulary.types[static_cast<std::size_t>(id)]);
        const std::string_view text = model.tokenizer->bytes(id);
        const bool fits = is_end ? automaton.may_end(state)
                                 : is_plain && !text.empty() && automaton.after(state, text) != Automaton::kRefused;
        ASSERT_EQ(mask.allows(id), fits) << "token " << id << ", mask " << i;
      }
      state = masks.after(state, any_of(mask, random));
      if (state == TokenMasks::kOver || automaton.complete(state)) state = automaton.start();
    }
  }
}

}  // namespace
}  // namespace tandem::test
