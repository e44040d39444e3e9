// Prompt files: JSON lines with `id`, `task`, `messages` (or `prompt`) and `max_tokens`.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "src/engine/session.h"
#include "src/text/chat_template.h"

namespace tandem {

struct PromptRow {
  std::string id, task;
  std::vector<ChatMessage> messages;
  std::optional<int> max_tokens;

  // The contents joined by blank lines, for models without a chat template.
  std::string raw_text() const;
};

// Throws Error(usage) naming file, line and field for anything malformed, and for a file without rows.
std::vector<PromptRow> read_prompts(const std::string& path);

// Ids of every prompt, so that one that does not fit is refused before the first answer: Error(input) naming file and
// prompt.
std::vector<std::vector<TokenId>> encode_prompts(const std::string& path, const std::vector<PromptRow>& rows,
                                                 const Session& session);

}  // namespace tandem
