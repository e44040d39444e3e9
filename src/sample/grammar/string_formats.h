// The values of JSON schema's keyword `format` that are supported, as expressions over plain text.
//
//   date       RFC 3339 full-date, years 0001 to 9999, with the days that the month has
//   time       RFC 3339 full-time, with offset; no leap seconds, T and Z in capitals, up to 9 digits of a second's
//   fraction date-time  a date, "T" and a time uuid       8-4-4-4-12 hexadecimal digits (RFC 4122) ipv4       four
//   numbers up to 255 without leading zeros ipv6       RFC 4291, all short forms, also with an IPv4 tail; no zone email
//   RFC 5321 with a dot-string before the @ and host names after it, labels of up to 63 characters;
//              no quoted names, no addresses in brackets
//   uri        RFC 3986, with scheme; hosts as names, IPv4 or IPv6, no future IP literal
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "src/sample/grammar/grammar.h"

namespace tandem {

std::vector<std::string> string_format_names();

// The texts of a format. Throws Error(config) that begins with `place` for a name that is not supported.
Expression string_format(std::string_view name, const std::string& place);

}  // namespace tandem
