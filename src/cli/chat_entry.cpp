#include "src/cli/chat_entry.h"

#include <string_view>
#include <utility>

namespace tandem {
namespace {

constexpr std::string_view kBlock = "\"\"\"";
constexpr const char* kPrompt = "> ";
constexpr const char* kMore = "... ";

ChatEntry unfinished(const Line& line) {
  return {line.kind == Line::Kind::end ? ChatEntry::Kind::end : ChatEntry::Kind::interrupted, {}};
}

// `text` follows the opening marks. An end of the input ends the block too.
ChatEntry read_block(LineReader& lines, std::string text) {
  bool first = text.empty();
  while (!text.ends_with(kBlock)) {
    const Line line = lines.read(kMore);
    if (line.kind == Line::Kind::interrupted) return unfinished(line);
    if (line.kind == Line::Kind::end) return {ChatEntry::Kind::message, std::move(text)};
    if (!std::exchange(first, false)) text += '\n';
    text += line.text;
  }
  text.resize(text.size() - kBlock.size());
  if (text.ends_with('\n')) text.pop_back();  // the marks stood on a line of their own
  return {ChatEntry::Kind::message, std::move(text)};
}

}  // namespace

ChatEntry read_entry(LineReader& lines) {
  Line line = lines.read(kPrompt);
  if (line.kind != Line::Kind::text) return unfinished(line);
  std::string text = std::move(line.text);
  if (text.starts_with(kBlock)) return read_block(lines, text.substr(kBlock.size()));
  for (;;) {
    const bool pasted = line.more && !text.starts_with('/');
    if (!pasted && !text.ends_with('\\')) break;
    if (!pasted) text.pop_back();
    text += '\n';
    line = lines.read(kMore);
    if (line.kind == Line::Kind::interrupted) return unfinished(line);
    if (line.kind == Line::Kind::end) {
      text.pop_back();
      break;
    }
    text += line.text;
  }
  return {text.starts_with('/') ? ChatEntry::Kind::command : ChatEntry::Kind::message, std::move(text)};
}

}  // namespace tandem
