// Lines that a user types, edits and recalls, or that a pipe brings.
#pragma once
#include <memory>
#include <string>

namespace tandem {

struct Line {
  enum class Kind { text, interrupted, end };
  Kind kind;
  std::string text;   // without the newline at its end; pasted text may hold newlines
  bool more = false;  // the next line came with this one, so both were pasted
};

class LineReader {
 public:
  virtual ~LineReader() = default;
  // The next line; interrupted when Ctrl-C (or an end by signal) came first, which stays set in interrupted(). `prompt`
  // is shown on a terminal only.
  virtual Line read(const std::string& prompt) = 0;
  virtual bool interactive() const = 0;
};

// Reads stdin as it comes.
std::unique_ptr<LineReader> make_piped_reader();

// Edits lines on the terminal: stdin is one. Keys pressed between two calls of read(), Ctrl-D too, are those of the
// next. Prompt and echo go to `output`, a descriptor of a terminal (1 or 2). Lines are remembered in `history_file`,
// which only the user can read, over runs; empty: in this run alone.
std::unique_ptr<LineReader> make_terminal_reader(int output, const std::string& history_file);

// Where lines are remembered: tandem/chat_history in $XDG_STATE_HOME or ~/.local/state; empty without a home.
std::string default_history_file();

}  // namespace tandem
