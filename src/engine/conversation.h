// The messages of a chat and the prompts that they become, within a context: nothing here runs a model.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "src/base/types.h"
#include "src/text/chat_template.h"

namespace tandem {

// What a conversation is, all of it.
struct ConversationState {
  std::string system;                 // empty: none of its own
  std::vector<ChatMessage> messages;  // all of them, those that were dropped from the context too
  std::size_t first_kept = 0;         // of messages: those before are not in the context any more
  std::uint32_t dropped_tokens = 0;   // that the context lost with them
};

// What left the context so that a turn fits.
struct DroppedTurns {
  int turns = 0, messages = 0;
  int tokens = 0;  // that the prompt is shorter by
  int ids = 0;     // of the prompt, all of them
  int front = 0;   // ids of the prompt that stand where they stood: the system prompt
  // Whether the ids behind these are those from front + tokens on: the template left the others as they were.
  bool one_cut = false;
};

// A prompt that asks for the next answer.
struct TurnPrompt {
  std::vector<TokenId> ids;
  std::uint32_t dropped_tokens;  // of the conversation, before these ids: see Engine::start
  std::optional<DroppedTurns> dropped;
};

class Conversation {
 public:
  // Ids of a chat as its template renders these messages, the request for an answer included.
  using Encode = std::function<std::vector<TokenId>(const std::vector<ChatMessage>&)>;
  struct Limits {
    int context;        // most ids of prompt and answer together
    int answer;         // ids to keep free for an answer; at most half the context is
    bool drop = false;  // whether the oldest turns make room
  };

  Conversation(std::string system, Encode encode, Limits limits);

  // Adds a user's message and gives its prompt. Where the limits say so, the oldest turns (a user's message and all up
  // to the next one) leave the context until prompt and room for the answer fit, or nothing is left to drop. Throws
  // Error(input) with both lengths for a prompt that leaves no room, and as the template does; nothing has changed
  // then.
  TurnPrompt ask(std::string message);
  // Adds the answer to the message that was asked last.
  void answer(std::string text);
  // Takes back the message that was asked last and not answered.
  void take_back();

  // Begins anew with the same system prompt.
  void reset();
  void set_system(std::string text) { state_.system = std::move(text); }

  const ConversationState& state() const { return state_; }
  // `state`: first_kept within its messages.
  void restore(ConversationState state) { state_ = std::move(state); }

 private:
  std::vector<TokenId> encode(const ConversationState& state) const;
  void make_room(ConversationState& state, TurnPrompt& prompt) const;

  Encode encode_;
  Limits limits_;
  ConversationState state_;
};

}  // namespace tandem
