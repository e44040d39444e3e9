#include "src/text/pretokenizer.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <string_view>

#include "src/base/error.h"

namespace tandem {
namespace {

// The patterns are those that the models were trained with, as published in their tokenizer files. White space is
// Unicode's property of that name: PCRE2's own \s has one character more (U+180E).
constexpr std::string_view kContractions = R"((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD]))";
constexpr std::string_view kWordWithLead = R"([^\r\n\p{L}\p{N}]?\p{L}+)";
constexpr std::string_view kSymbolsWithLines = R"( ?[^\p{White_Space}\p{L}\p{N}]+[\r\n]*)";
constexpr std::string_view kLinesOrSpaces =
    R"(\p{White_Space}*[\r\n]+|\p{White_Space}+(?!\P{White_Space})|\p{White_Space}+)";
constexpr std::string_view kGpt2 = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\p{White_Space}\p{L}\p{N}]+)"
                                   R"(|\p{White_Space}+(?!\P{White_Space})|\p{White_Space}+)";

struct Known {
  std::string_view name;
  std::string_view first;   // a pattern applied before the main one, or nothing
  std::string_view digits;  // main pattern: that of Qwen 2 and Llama 3 with this alternative for digits; empty: GPT-2's
  bool whole_pieces_first;
};
constexpr std::string_view kOneDigit = R"(\p{N})", kThreeDigits = R"(\p{N}{1,3})";
// Names that llama.cpp's converters write; those behind the first of a kind are the same as it (src/llama-vocab.cpp).
constexpr std::array<Known, 12> kKnown = {{
    {"qwen2", "", kOneDigit, false},
    {"deepseek-r1-qwen", "", kOneDigit, false},
    {"megrez", "", kOneDigit, false},
    {"smollm", kOneDigit, "", false},
    {"gpt-2", "", "", false},
    {"llama-bpe", "", kThreeDigits, true},
    {"llama3", "", kThreeDigits, true},
    {"llama-v3", "", kThreeDigits, true},
    {"falcon3", "", kThreeDigits, true},
    {"pixtral", "", kThreeDigits, true},
    {"dbrx", "", kThreeDigits, false},  // Llama 3's pieces, all of them merged
    {"smaug-bpe", "", kThreeDigits, false},
}};

}  // namespace

bool is_llama3_pretokenizer(std::string_view name) {
  return std::any_of(kKnown.begin(), kKnown.end(),
                     [&](const Known& entry) { return entry.name == name && entry.whole_pieces_first; });
}

Pretokenizer::Pretokenizer(std::string_view name, std::string_view where)
    : context_(pcre2_match_context_create(nullptr)) {
  // Work is linear in the text for these patterns, so no limit on it may turn a long run of spaces into an error.
  pcre2_set_match_limit(context_.get(), std::numeric_limits<std::uint32_t>::max());
  std::string names;
  for (const Known& entry : kKnown) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", entry.name);
    if (entry.name != name) continue;
    if (!entry.first.empty()) add_pattern(std::string(entry.first));
    add_pattern(entry.digits.empty() ? std::string(kGpt2)
                                     : fmt::format("{}|{}|{}|{}|{}", kContractions, kWordWithLead, entry.digits,
                                                   kSymbolsWithLines, kLinesOrSpaces));
    whole_pieces_first_ = entry.whole_pieces_first;
    return;
  }
  fail(ErrorKind::model, "{}: tokenizer.ggml.pre: expected one of {}, got \"{}\"", where, names, name);
}

void Pretokenizer::add_pattern(const std::string& pattern) {
  int code = 0;
  PCRE2_SIZE offset = 0;
  patterns_.emplace_back(
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(), PCRE2_UTF, &code, &offset, nullptr));
  if (patterns_.back() == nullptr) {
    fail(ErrorKind::model, "pre-tokenizer pattern {}: PCRE2 error {} at offset {}", pattern, code, offset);
  }
  // Where the system forbids run-time code this fails and the interpreter gives the same pieces, more slowly.
  pcre2_jit_compile(patterns_.back().get(), PCRE2_JIT_COMPLETE);
}

void Pretokenizer::split(std::string_view text, std::vector<std::string_view>& pieces) const {
  const Match match(pcre2_match_data_create(1, nullptr));
  std::vector<std::string_view> before = {text}, after;
  for (std::size_t i = 0; i + 1 < patterns_.size(); ++i) {
    after.clear();
    for (const std::string_view piece : before) split_by(i, piece, match.get(), after);
    before.swap(after);
  }
  for (const std::string_view piece : before) split_by(patterns_.size() - 1, piece, match.get(), pieces);
}

void Pretokenizer::split_by(std::size_t pattern, std::string_view text, pcre2_match_data* match,
                            std::vector<std::string_view>& pieces) const {
  std::size_t at = 0;
  while (at < text.size()) {
    const int count = pcre2_match(patterns_[pattern].get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), at,
                                  PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY, match, context_.get());
    if (count < 0 && count != PCRE2_ERROR_NOMATCH) fail(ErrorKind::input, "pre-tokenizer: PCRE2 error {}", count);
    const PCRE2_SIZE* bounds = pcre2_get_ovector_pointer(match);
    const std::size_t begin = count < 0 ? text.size() : bounds[0];
    if (begin > at) pieces.push_back(text.substr(at, begin - at));
    if (count < 0) return;
    pieces.push_back(text.substr(begin, bounds[1] - begin));
    at = bounds[1];
  }
}

}  // namespace tandem
