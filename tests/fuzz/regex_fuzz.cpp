// libFuzzer target of regular expressions: whatever the pattern is, it becomes an expression of bounded size without
// rules, or is refused with Error(config).
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "src/base/error.h"
#include "src/sample/grammar/expression.h"
#include "src/sample/grammar/regex.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view pattern(reinterpret_cast<const char*>(data), size);
  try {
    tandem::Expression whole = tandem::regex_expression(pattern, tandem::RegexMatch::whole);
    const tandem::TextLength length = tandem::text_length(whole);
    if (length.least < 0 || (length.most >= 0 && length.most < length.least)) std::abort();
    if (tandem::limit_length(whole, {2, 5}) && !tandem::is_nothing(whole)) {
      const tandem::TextLength limited = tandem::text_length(whole);
      if (limited.least < 2 || limited.most < 0 || limited.most > 5) std::abort();
    }
    tandem::regex_expression(pattern, tandem::RegexMatch::search);
  } catch (const tandem::Error& error) {
    if (error.kind() != tandem::ErrorKind::config) std::abort();
  }
  return 0;
}
