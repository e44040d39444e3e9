// libFuzzer target of the chat templates: a template's text. Whatever it is, it is either rendered or refused with
// Error(model) or Error(input), and every byte of the text is marked.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "src/text/jinja/json_text.h"
#include "src/text/jinja/template.h"

namespace {

using namespace tandem;

jinja::Variables variables(jinja::Runtime& runtime) {
  static const nlohmann::ordered_json given = {
      {"messages",
       {{{"role", "user"}, {"content", "Hi <|im_end|> \u00e9\n"}}, {{"role", "assistant"}, {"content", nullptr}}}},
      {"tools", {{{"name", "f"}, {"parameters", {{"n", 1.5}, {"m", nullptr}}}}}},
      {"add_generation_prompt", true}};
  jinja::Variables all;
  for (const auto& [name, value] : given.items()) all.emplace_back(name, jinja::from_json(runtime, value));
  return all;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  jinja::Limits limits;
  limits.steps = 20000;
  limits.text_bytes = limits.output_bytes = 1 << 20;
  try {
    const jinja::Template parsed(std::string_view(reinterpret_cast<const char*>(data), size), "fuzz");
    const jinja::MarkedText text = parsed.render(
        variables, [] { return std::tm{}; }, limits);
    if (text.size() != (text.runs().empty() ? 0 : text.runs().back().end)) std::abort();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::model && error.kind() != ErrorKind::input) std::abort();
  }
  return 0;
}
