// Prompt files: JSON lines with `id`, `task`, `messages` (or `prompt`) and `max_tokens`. One prompt that cannot be
// answered does not lose the others.
#pragma once
#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "src/base/error.h"
#include "src/engine/session.h"
#include "src/text/chat_template.h"

namespace tandem {

class ProgressBar;

struct PromptRow {
  std::string id, task;
  std::vector<ChatMessage> messages;
  std::optional<int> max_tokens;
  int line = 0;  // of the file, from 1

  // The contents joined by blank lines, for models without a chat template.
  std::string raw_text() const;
};

// Which rows of a prompt file a command works on.
struct PromptChoice {
  std::string file{};
  std::vector<std::string> tasks{};  // empty: all
  int limit = 0;                     // the first so many of those; 0 is all
};

// Adds --prompts, --task and --limit to a command; returns the first. `choice` outlives the parsing.
CLI::Option* add_prompt_options(CLI::App& command, PromptChoice& choice);

// The rows chosen, in the order of the file. Throws Error(usage) naming file, line and field for anything malformed,
// for a file without rows, and for a task that no row has.
std::vector<PromptRow> read_prompts(const PromptChoice& choice);

// Ids of a prompt. Throws Error(input) naming the limit for one that is empty or does not fit into the context.
std::vector<TokenId> encode_prompt(const PromptRow& row, const Session& session);

// When an answer ends: as config and row say, whichever allows fewer tokens, and at Ctrl-C. `most_tokens`: one more
// limit, 0 is none.
StopRules prompt_rules(const PromptRow& row, const Session& session, int most_tokens = 0);

// The prompts of a file that could not be answered.
class PromptFailures {
 public:
  explicit PromptFailures(std::string file) : file_(std::move(file)) {}

  // Works on one prompt. A prompt beyond a limit or a row of logits without a number ends this work only: it is said on
  // stderr (`bar`, if any, is wiped first), noted, and returned as a sentence with file, line and id. Other errors
  // pass.
  template <typename Work>
  std::optional<std::string> attempt(const PromptRow& row, Work&& work, ProgressBar* bar = nullptr) {
    try {
      work();
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::input && error.kind() != ErrorKind::numeric) throw;
      return note(row, error.what(), bar);
    }
    return std::nullopt;
  }

  std::size_t count() const { return ids_.size(); }
  // "2 of 20 prompts failed: a, b" without a final newline; empty when none did.
  std::string summary(std::size_t prompts) const;

 private:
  std::string note(const PromptRow& row, const char* what, ProgressBar* bar);

  std::string file_;
  std::vector<std::string> ids_;
};

}  // namespace tandem
