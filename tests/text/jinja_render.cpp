// Renders the templates on stdin, one JSON object {"template", "variables"} a line: prints {"text"} or {"error",
// "kind"} for each. The other side of tests/text/jinja_compare.py.
#include <cstdio>
#include <iostream>

#include "src/text/jinja/json_text.h"
#include "src/text/jinja/template.h"

namespace {

using Json = nlohmann::ordered_json;

std::tm fixed_time() {  // Saturday, 2024-02-03 04:05:06
  std::tm time{};
  time.tm_year = 124, time.tm_mon = 1, time.tm_mday = 3, time.tm_hour = 4, time.tm_min = 5, time.tm_sec = 6;
  time.tm_wday = 6, time.tm_yday = 33;
  return time;
}

Json rendered(const Json& row) {
  using namespace tandem;
  try {
    const jinja::Template parsed(row.at("template").get<std::string>(), "template");
    const auto variables = [&](jinja::Runtime& runtime) {
      jinja::Variables all;
      for (const auto& [name, value] : row.at("variables").items()) {
        all.emplace_back(name, jinja::from_json(runtime, value));
      }
      return all;
    };
    return {{"text", parsed.render(variables, fixed_time).bytes()}};
  } catch (const Error& error) {
    return {{"error", error.what()}, {"kind", error.kind() == ErrorKind::model ? "model" : "input"}};
  }
}

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    std::cout << rendered(Json::parse(line)).dump(-1, ' ', false, Json::error_handler_t::replace) << '\n';
  }
}
