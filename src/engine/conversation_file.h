// A conversation as JSON: what /save writes and /load reads.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "src/engine/conversation.h"

namespace tandem {

// Replaces `path` whole or not at all, readable by the user alone. `about` says what made it, for readers and for
// read_conversation() to hand back. Throws Error(file).
void write_conversation(const std::string& path, const ConversationState& state, const nlohmann::ordered_json& about);

struct SavedConversation {
  ConversationState state;
  nlohmann::ordered_json about;  // null where the file has none
};

// Reads such a file (whose dropped messages are counted without a system message), or any JSON object with `messages`
// of role and content; a system message at their front becomes the system prompt. Throws Error(file) naming file,
// place, expected and got.
SavedConversation read_conversation(const std::string& path);

}  // namespace tandem
