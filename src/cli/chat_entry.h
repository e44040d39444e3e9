// What a user enters in a chat: a message of one line or more, or a command.
#pragma once
#include <string>

#include "src/cli/line_reader.h"

namespace tandem {

struct ChatEntry {
  enum class Kind { message, command, interrupted, end };
  Kind kind;
  std::string text;  // of a command, with its slash
};

// Reads the next entry. A line that ends with a backslash goes on with the next one, as one does that was pasted with
// others, unless it is a command; one that begins with """ goes on to the line that ends with """. A line that begins
// with a slash is a command, within """ it never is.
ChatEntry read_entry(LineReader& lines);

}  // namespace tandem
