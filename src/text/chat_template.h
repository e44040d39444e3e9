// Chat messages -> prompt ids, exactly as the model's own template renders them.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "src/text/tokenizer.h"

namespace tandem {

struct ChatMessage {
  std::string role;     // "system", "user" or "assistant"
  std::string content;  // any bytes; never becomes a control token
};

// One run of a rendered prompt: template text, whose control tokens are parsed, or message text, whose never are.
struct ChatSegment {
  std::string text;
  bool from_template;
};

class ChatTemplate {
 public:
  virtual ~ChatTemplate() = default;
  // The prompt that asks for the assistant's next turn. Throws Error(input) for an unknown role.
  virtual std::vector<ChatSegment> render(const std::vector<ChatMessage>& messages) const = 0;
  // Strings that mark turns; a raw prompt that already holds one deserves a warning.
  virtual std::vector<std::string> markers() const = 0;
  virtual std::string_view name() const = 0;  // for reports, e.g. "chatml (qwen2)"
};

// Recognises a template by its exact text. Throws Error(model) for any other, saying so and how to go on without
// (`prompt.chat: false`); never falls back to a default.
std::unique_ptr<ChatTemplate> make_chat_template(std::string_view jinja_text, std::string_view where);

std::string text_of(const std::vector<ChatSegment>& segments);

// Ids of a rendered chat: control tokens of template text are parsed, message text never is; plain text of template and
// message between two parsed control tokens is tokenized as one run. BOS is in front when the model asks for one, once.
std::vector<TokenId> encode_chat(const Tokenizer& tokenizer, const std::vector<ChatSegment>& segments);

// The template's markers that are not one token each: to such a model they are plain text, so that the template was
// made for another.
std::vector<std::string> unknown_markers(const ChatTemplate& chat, const Tokenizer& tokenizer);

}  // namespace tandem
