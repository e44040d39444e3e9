#include "src/text/jinja/text_tools.h"

#include <algorithm>
#include <array>
#include <set>

#include "src/text/jinja/unicode.h"
#include "src/text/utf8.h"

namespace tandem::jinja {
namespace {

std::string_view character(const MarkedText& text, const std::vector<std::size_t>& starts, std::size_t i) {
  return std::string_view(text.bytes()).substr(starts[i], starts[i + 1] - starts[i]);
}

// The runs without whitespace: their first character, and the one after their last.
std::vector<std::pair<std::size_t, std::size_t>> words(const MarkedText& text, const std::vector<std::size_t>& starts) {
  std::vector<std::pair<std::size_t, std::size_t>> found;
  bool inside = false;
  for (std::size_t i = 0; i + 1 < starts.size(); ++i) {
    const bool space = is_space(character(text, starts, i));
    if (!space && !inside) found.emplace_back(i, i);
    if (!space) found.back().second = i + 1;
    inside = !space;
  }
  return found;
}

bool ends_line(std::string_view character) {
  const Utf8Step step = utf8_step(character);
  if (!step.valid) return false;
  const char32_t c = step.character;
  return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

}  // namespace

MarkedText stripped(const MarkedText& text, Side side, const std::optional<std::string>& characters) {
  const std::vector<std::size_t> starts = character_starts(text.bytes());
  std::set<std::string_view> set;
  const std::vector<std::size_t> set_starts = character_starts(characters ? *characters : "");
  for (std::size_t s = 0; s + 1 < set_starts.size(); ++s) {
    set.insert(std::string_view(*characters).substr(set_starts[s], set_starts[s + 1] - set_starts[s]));
  }
  const auto goes = [&](std::size_t i) {
    const std::string_view c = character(text, starts, i);
    return characters ? set.contains(c) : is_space(c);
  };
  std::size_t begin = 0, end = starts.size() - 1;
  while (side != Side::right && begin < end && goes(begin)) ++begin;
  while (side != Side::left && end > begin && goes(end - 1)) --end;
  return text.slice(starts[begin], starts[end]);
}

MarkedText replaced(Runtime& runtime, const MarkedText& text, const MarkedText& from, const MarkedText& to,
                    std::int64_t count) {
  MarkedText out;
  const std::string& bytes = text.bytes();
  std::size_t at = 0;
  if (from.empty()) {  // before every character, and at the end
    for (const std::size_t start : character_starts(bytes)) {
      out.append_slice(text, at, start);
      at = start;
      if (count-- == 0) break;
      out.append(to);
      runtime.require_text(out.size());
    }
  } else {
    for (; count != 0; --count) {
      const std::size_t found = bytes.find(from.bytes(), at);
      if (found == std::string::npos) break;
      out.append_slice(text, at, found);
      out.append(to);
      runtime.require_text(out.size());
      at = found + from.size();
    }
  }
  out.append_slice(text, at, bytes.size());
  return out;
}

std::vector<MarkedText> split(Runtime& runtime, const MarkedText& text, const std::optional<std::string>& separator,
                              std::int64_t count) {
  std::vector<MarkedText> parts;
  if (!separator) {
    const std::vector<std::size_t> starts = character_starts(text.bytes());
    for (const auto& [begin, end] : words(text, starts)) {
      runtime.spend(1);
      if (count-- == 0) {
        parts.push_back(text.slice(starts[begin], text.size()));
        break;
      }
      parts.push_back(text.slice(starts[begin], starts[end]));
    }
    return parts;
  }
  std::size_t at = 0;
  for (; count != 0; --count) {
    runtime.spend(1);
    const std::size_t found = text.bytes().find(*separator, at);
    if (found == std::string::npos) break;
    parts.push_back(text.slice(at, found));
    at = found + separator->size();
  }
  parts.push_back(text.slice(at, text.size()));
  return parts;
}

std::vector<MarkedText> split_from_right(Runtime& runtime, const MarkedText& text,
                                         const std::optional<std::string>& separator, std::int64_t count) {
  std::vector<MarkedText> parts;
  std::size_t end = text.size();
  if (!separator) {
    const std::vector<std::size_t> starts = character_starts(text.bytes());
    auto found = words(text, starts);
    for (; !found.empty(); found.pop_back()) {
      runtime.spend(1);
      if (count-- == 0) {
        parts.push_back(text.slice(0, starts[found.back().second]));
        break;
      }
      parts.push_back(text.slice(starts[found.back().first], starts[found.back().second]));
    }
  } else {
    for (; count != 0 && end >= separator->size(); --count) {
      runtime.spend(1);
      const std::size_t found = text.bytes().rfind(*separator, end - separator->size());
      if (found == std::string::npos) break;
      parts.push_back(text.slice(found + separator->size(), end));
      end = found;
    }
    parts.push_back(text.slice(0, end));
  }
  std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<MarkedText> lines(Runtime& runtime, const MarkedText& text, bool keep_ends) {
  std::vector<MarkedText> parts;
  const std::vector<std::size_t> starts = character_starts(text.bytes());
  std::size_t begin = 0;
  for (std::size_t i = 0; i + 1 < starts.size(); ++i) {
    if (!ends_line(character(text, starts, i))) continue;
    runtime.spend(1);
    const std::size_t stop = starts[i];
    if (text.bytes()[starts[i]] == '\r' && i + 2 < starts.size() && text.bytes()[starts[i + 1]] == '\n') ++i;
    parts.push_back(text.slice(begin, keep_ends ? starts[i + 1] : stop));
    begin = starts[i + 1];
  }
  if (begin < text.size()) parts.push_back(text.slice(begin, text.size()));
  return parts;
}

Value texts(Runtime& runtime, std::vector<MarkedText> parts, SequenceKind kind) {
  std::vector<Value> items;
  items.reserve(parts.size());
  for (MarkedText& part : parts) items.push_back(runtime.text(std::move(part)));
  return runtime.list(std::move(items), kind);
}

MarkedText escaped(const MarkedText& text) {
  constexpr std::array<std::pair<char, std::string_view>, 5> kEntities = {
      {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'\'', "&#39;"}, {'"', "&#34;"}}};
  const std::string& bytes = text.bytes();
  MarkedText out;
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t next = std::min(bytes.find_first_of("&<>'\"", at), bytes.size());
    out.append_slice(text, at, next);
    at = next + 1;
    for (const auto& [character, entity] : kEntities) {
      if (next < bytes.size() && bytes[next] == character) out.append(entity, text.input_at(next));
    }
  }
  return out;
}

Value markup(Runtime& runtime, MarkedText text) { return Value(Markup{*runtime.text(std::move(text)).as<TextPtr>()}); }

}  // namespace tandem::jinja
