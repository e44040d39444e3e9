// libFuzzer target of GBNF: a grammar, then after a zero byte a text. The grammar is refused with Error(config), or the
// text is followed to the end or to the first byte that does not fit.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "src/base/error.h"
#include "src/sample/grammar/automaton.h"
#include "src/sample/grammar/gbnf.h"

// NOLINTNEXTLINE(readability-identifier-naming): the name libFuzzer calls
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t end = input.find('\0');
  try {
    tandem::Automaton automaton(tandem::parse_gbnf(input.substr(0, end), "fuzz.gbnf"), "fuzz");
    int state = automaton.start();
    for (const char byte : end == input.npos ? std::string_view() : input.substr(end + 1)) {
      const auto forced = automaton.forced(state);
      if (forced && automaton.next(state, *forced) == tandem::Automaton::kRefused) __builtin_trap();
      const bool expected = automaton.expected(state)[static_cast<std::uint8_t>(byte)];
      state = automaton.next(state, static_cast<std::uint8_t>(byte));
      // Nesting alone may refuse what is expected.
      if (state != tandem::Automaton::kRefused && !expected) __builtin_trap();
      if (state == tandem::Automaton::kRefused) break;
      if (automaton.complete(state) && !automaton.may_end(state)) __builtin_trap();
    }
  } catch (const tandem::Error& error) {
    if (error.kind() != tandem::ErrorKind::config) __builtin_trap();
  }
  return 0;
}
