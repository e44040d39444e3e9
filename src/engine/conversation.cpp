#include "src/engine/conversation.h"

#include <algorithm>
#include <utility>

#include "src/base/error.h"

namespace tandem {
namespace {

constexpr const char* kUser = "user";

// The message after the oldest turn in the context; none when that is the last one.
std::optional<std::size_t> next_turn(const ConversationState& state) {
  for (std::size_t i = state.first_kept + 1; i < state.messages.size(); ++i) {
    if (state.messages[i].role == kUser) return i;
  }
  return std::nullopt;
}

int shared_front(const std::vector<TokenId>& a, const std::vector<TokenId>& b) {
  return static_cast<int>(std::ranges::mismatch(a, b).in1 - a.begin());
}

}  // namespace

Conversation::Conversation(std::string system, Encode encode, Limits limits)
    : encode_(std::move(encode)), limits_(limits) {
  limits_.answer = std::min(limits_.answer, limits_.context / 2);
  state_.system = std::move(system);
}

std::vector<TokenId> Conversation::encode(const ConversationState& state) const {
  std::vector<ChatMessage> messages;
  if (!state.system.empty()) messages.push_back({"system", state.system});
  messages.insert(messages.end(), state.messages.begin() + static_cast<std::ptrdiff_t>(state.first_kept),
                  state.messages.end());
  return encode_(messages);
}

TurnPrompt Conversation::ask(std::string message) {
  ConversationState next = state_;
  next.messages.push_back({kUser, std::move(message)});
  TurnPrompt prompt{.ids = encode(next), .dropped_tokens = 0, .dropped = std::nullopt};
  if (limits_.drop) make_room(next, prompt);
  prompt.dropped_tokens = next.dropped_tokens;
  const int length = static_cast<int>(prompt.ids.size());
  if (length >= limits_.context) {
    fail(ErrorKind::input, "prompt: {} tokens of the conversation leave no room in a context of {} tokens ({})", length,
         limits_.context,
         limits_.drop ? "target.context, and no older turn is left to drop"
                      : "target.context; runtime.context_full: drop_oldest_turns forgets the oldest turns");
  }
  state_ = std::move(next);
  return prompt;
}

void Conversation::make_room(ConversationState& state, TurnPrompt& prompt) const {
  const std::vector<TokenId> whole = prompt.ids;
  DroppedTurns dropped;
  while (static_cast<int>(prompt.ids.size()) + limits_.answer > limits_.context) {
    const std::optional<std::size_t> next = next_turn(state);
    if (!next) break;
    ++dropped.turns;
    dropped.messages += static_cast<int>(*next - state.first_kept);
    state.first_kept = *next;
    prompt.ids = encode(state);
  }
  if (dropped.turns == 0) return;
  dropped.ids = static_cast<int>(prompt.ids.size());
  // A template might write more for fewer messages; positions of noise never go back.
  dropped.tokens = std::max(0, static_cast<int>(whole.size()) - dropped.ids);
  dropped.front = shared_front(whole, prompt.ids);
  dropped.one_cut = std::equal(prompt.ids.rbegin(), prompt.ids.rend() - dropped.front, whole.rbegin(),
                               whole.rend() - dropped.front - dropped.tokens);
  state.dropped_tokens += static_cast<std::uint32_t>(dropped.tokens);
  prompt.dropped = dropped;
}

void Conversation::answer(std::string text) { state_.messages.push_back({"assistant", std::move(text)}); }

void Conversation::take_back() { state_.messages.pop_back(); }

void Conversation::reset() { state_ = {.system = std::move(state_.system), .messages = {}}; }

}  // namespace tandem
