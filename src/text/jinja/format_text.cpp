#include "src/text/jinja/format_text.h"

#include <algorithm>
#include <charconv>

namespace tandem::jinja {
namespace {

class Fields {
 public:
  explicit Fields(const Arguments& arguments) : arguments_(arguments) {}

  // The argument that the inside of a pair of braces names.
  const Value& find(std::string_view field) {
    if (field.find_first_of(".[!:{") != std::string_view::npos) unsupported("format: {{{}}} is not supported", field);
    if (field.empty()) return positional(next_++, true);
    std::size_t index = 0;
    const auto parsed = std::from_chars(field.data(), field.data() + field.size(), index);
    if (parsed.ptr == field.data() + field.size()) return positional(index, false);
    const auto named = std::find_if(arguments_.named.begin(), arguments_.named.end(),
                                    [&](const auto& argument) { return argument.first == field; });
    if (named == arguments_.named.end()) wrong("format: there is no argument {}", field);
    return named->second;
  }

 private:
  const Value& positional(std::size_t index, bool counted) {
    counted_ |= counted;
    numbered_ |= !counted;
    if (counted_ && numbered_) wrong("format: fields are counted or numbered, not both");
    if (index >= arguments_.positional.size()) wrong("format: there is no argument {}", index);
    return arguments_.positional[index];
  }

  const Arguments& arguments_;
  std::size_t next_ = 0;
  bool counted_ = false, numbered_ = false;
};

}  // namespace

MarkedText format_text(Runtime& runtime, const MarkedText& format, const Arguments& arguments) {
  const std::string_view bytes = format.bytes();
  Fields fields(arguments);
  MarkedText out;
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t brace = std::min(bytes.find_first_of("{}", at), bytes.size());
    out.append_slice(format, at, brace);
    if (brace == bytes.size()) break;
    at = brace + 1;
    if (at < bytes.size() && bytes[at] == bytes[brace]) {  // doubled: itself
      out.append_slice(format, at, at + 1);
      ++at;
      continue;
    }
    const std::size_t end = bytes[brace] == '{' ? bytes.find('}', at) : std::string_view::npos;
    if (end == std::string_view::npos) wrong("format: a single {} in the text", bytes[brace]);
    const Value& value = fields.find(bytes.substr(at, end - at));
    if (value.is<Markup>()) unsupported("format with what safe or escape returned is not supported");
    runtime.spend(weight_of(value));
    out.append(runtime.to_text(value));
    runtime.require_text(out.size());
    at = end + 1;
  }
  return out;
}

}  // namespace tandem::jinja
