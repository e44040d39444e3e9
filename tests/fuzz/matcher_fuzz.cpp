// libFuzzer target of the matcher: a GBNF grammar, then after a zero byte what to do with an answer. Every mask holds
// what tokens tried one by one give, and the state behind pushes and pops is that of the tokens alone.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "src/base/error.h"
#include "src/sample/grammar/gbnf.h"
#include "src/sample/grammar/grammar_constraint.h"
#include "tests/text/tiny_vocabulary.h"

namespace {

constexpr tandem::TokenId kEnd = 256;

const tandem::Tokenizer& words() {
  static const auto tokenizer = [] {
    tandem::Vocabulary vocabulary = tandem::tiny_vocabulary("qwen2");
    tandem::add(vocabulary, "<|im_end|>", tandem::TokenType::control);
    for (const char* text :
         {"ab", "abc", "aa", "aaaa", "a\"", "\":", "{\"", "\"}", "\xC3\xA9", "\xA9\"", "  ", "0123"}) {
      tandem::add(vocabulary, tandem::in_alphabet(text), tandem::TokenType::normal);
    }
    return tandem::make_tokenizer(std::move(vocabulary), "fuzz");
  }();
  return *tokenizer;
}

void check_mask(tandem::TokenMasks& masks, int state) {
  const tandem::TokenMask mask = masks.mask(state);
  for (tandem::TokenId id = 0; id < words().vocabulary().size(); ++id) {
    if (mask.allows(id) != masks.admits(state, id)) __builtin_trap();
  }
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): the name libFuzzer calls
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto trie = std::make_shared<const tandem::VocabularyTrie>(words(), tandem::TokenMask());
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t end = input.find('\0');
  if (end == input.npos) return 0;
  try {
    const auto masks = std::make_shared<tandem::TokenMasks>(tandem::parse_gbnf(input.substr(0, end), "fuzz.gbnf"),
                                                            "fuzz", trie, tandem::TokenMask(), std::vector{kEnd});
    tandem::GrammarConstraint constraint(masks);
    constraint.begin(1);
    tandem::Context context;
    context.push(0);
    for (const char byte : input.substr(end + 1).substr(0, 64)) {
      const auto step = static_cast<std::uint8_t>(byte);
      if (step % 4 == 0 && context.size() > 1) {
        context.pop(1 + step / 4 % (context.size() - 1));
      } else {
        const tandem::TokenMask mask = constraint.mask(constraint.state(context));
        if (mask.runs().empty()) break;
        const tandem::TokenRun run = mask.runs()[step % mask.runs().size()];
        context.push(run.begin + step % (std::min(run.end, words().vocabulary().size()) - run.begin));
      }
      const int state = constraint.state(context);
      check_mask(*masks, state);
      tandem::GrammarConstraint fresh(masks);
      fresh.begin(1);
      if (fresh.state(context) != state) __builtin_trap();
      constraint.likely(state);
    }
    constraint.explain(context);
  } catch (const tandem::Error& error) {
    if (error.kind() != tandem::ErrorKind::config) __builtin_trap();
  }
  return 0;
}
