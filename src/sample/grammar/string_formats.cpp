#include "src/sample/grammar/string_formats.h"

#include <fmt/format.h>

#include <map>

#include "src/base/error.h"
#include "src/base/option_text.h"
#include "src/sample/grammar/regex.h"

namespace tandem {
namespace {

std::string any_of(const std::vector<std::string>& patterns) { return fmt::format("(?:{})", fmt::join(patterns, "|")); }

std::string date() {
  const std::string year = any_of({R"(\d{3}[1-9])", R"(\d{2}[1-9]0)", R"(\d[1-9]00)", R"([1-9]000)"});
  // Divisible by 4 and not by 100, or by 400; year 0000 is none of these.
  const std::string leap_year =
      any_of({R"(\d{2}(?:0[48]|[2468][048]|[13579][26]))", R"((?:0[48]|[2468][048]|[13579][26])00)"});
  return any_of({year + "-" +
                     any_of({"(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])", "(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)",
                             "02-(?:0[1-9]|1[0-9]|2[0-8])"}),
                 leap_year + "-02-29"});
}

std::string time() {
  const std::string minutes = "(?:[01][0-9]|2[0-3]):[0-5][0-9]";
  return minutes + R"(:[0-5][0-9](?:\.[0-9]{1,9})?(?:Z|[+\-])" + minutes + ")";
}

std::string ipv4() {
  const std::string number = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])";
  return fmt::format(R"({0}(?:\.{0}){{3}})", number);
}

// `before` groups at most, "::", and exactly `after` groups' worth of text.
std::string ipv6() {
  const std::string group = "[0-9A-Fa-f]{1,4}";
  const std::string tail = any_of({group + ":" + group, ipv4()});  // the last 32 bits
  std::vector<std::string> forms{fmt::format("(?:{}:){{6}}{}", group, tail)};
  for (int after = 0; after <= 7; ++after) {
    // At most 7 - after groups stand before "::", which is worth one group or more.
    const int before = 7 - after;
    const std::string front = before == 0   ? ""
                              : before == 1 ? fmt::format("(?:{})?", group)
                                            : fmt::format("(?:{0}(?::{0}){{0,{1}}})?", group, before - 1);
    const std::string back = after == 0   ? ""
                             : after == 1 ? group
                                          : fmt::format("(?:{}:){{{}}}{}", group, after - 2, tail);
    forms.push_back(front + "::" + back);
  }
  return any_of(forms);
}

std::string email() {
  const std::string atom = R"([a-zA-Z0-9!#$%&'*+/=?\^_`{|}~\-]+)";
  const std::string label = R"([a-zA-Z0-9](?:[a-zA-Z0-9\-]{0,61}[a-zA-Z0-9])?)";
  return fmt::format(R"({0}(?:\.{0})*@{1}(?:\.{1})*)", atom, label);
}

std::string uri() {
  const std::string unreserved = R"(A-Za-z0-9\-._~)", delimiters = R"(!$&'()*+,;=)", escape = "%[0-9A-Fa-f]{2}";
  const auto text = [&](const std::string& more) {
    return fmt::format("(?:[{}{}{}]|{})", unreserved, delimiters, more, escape);
  };
  const std::string part = text(":@");
  const std::string host = any_of({fmt::format(R"(\[{}\])", ipv6()), text("") + "*"});
  const std::string authority = fmt::format("(?:{}*@)?{}(?::[0-9]*)?", text(":"), host);
  const std::string path = fmt::format("(?:/{}*)*", part);
  const std::string hierarchy =
      any_of({"//" + authority + path, fmt::format("/(?:{}+{})?", part, path), fmt::format("(?:{}+{})?", part, path)});
  const std::string after = text(R"(:@/?)");
  return fmt::format(R"([A-Za-z][A-Za-z0-9+\-.]*:{}(?:\?{}*)?(?:#{}*)?)", hierarchy, after, after);
}

const std::map<std::string, std::string, std::less<>>& patterns() {
  static const std::map<std::string, std::string, std::less<>> kPatterns{
      {"date", date()},
      {"time", time()},
      {"date-time", date() + "T" + time()},
      {"uuid", "[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}"},
      {"ipv4", ipv4()},
      {"ipv6", ipv6()},
      {"email", email()},
      {"uri", uri()}};
  return kPatterns;
}

}  // namespace

std::vector<std::string> string_format_names() {
  std::vector<std::string> names;
  for (const auto& [name, pattern] : patterns()) names.push_back(name);
  return names;
}

Expression string_format(std::string_view name, const std::string& place) {
  const auto found = patterns().find(name);
  if (found == patterns().end()) {
    fail(ErrorKind::config, "{}: format '{}' is not supported; expected {}", place, name,
         joined_choices(string_format_names()));
  }
  return regex_expression(found->second, RegexMatch::whole, "format " + found->first);
}

}  // namespace tandem
