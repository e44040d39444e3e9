// Chat messages -> prompt ids, exactly as the model's own template renders them.
#pragma once
#include <ctime>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "src/text/tokenizer.h"

namespace tandem {

struct ChatMessage {
  std::string role;     // "system", "user", "assistant", "tool" ...
  std::string content;  // any bytes; never becomes a control token
};

// Everything that a template may be given. Strings in it never become control tokens, but for roles, which are names.
struct ChatRequest {
  using Json = nlohmann::ordered_json;
  Json messages = Json::array();    // objects with role and, mostly, content: a text or a list of parts
  Json tools, documents;            // lists of objects; null = none given
  Json variables = Json::object();  // further ones by name, e.g. {"enable_thinking": false}
  bool add_generation_prompt = true;
};

// One run of a rendered prompt: template text, whose control tokens are parsed, or message text, whose never are.
struct ChatSegment {
  std::string text;
  bool from_template;
};

class ChatTemplate {
 public:
  virtual ~ChatTemplate() = default;
  // The prompt that asks for the assistant's next turn. Throws Error(input), with the template's line, where the
  // template refuses the messages or a role is unknown, Error(model) where it needs what is not supported.
  virtual std::vector<ChatSegment> render_request(const ChatRequest& request) const = 0;
  std::vector<ChatSegment> render(const std::vector<ChatMessage>& messages) const;
  // Strings that mark turns; a raw prompt that already holds one deserves a warning.
  virtual std::vector<std::string> markers() const = 0;
  virtual std::string_view name() const = 0;  // for reports: the first marker and a hash of the template's text
};

// What a template is given beside the messages.
struct TemplateSetting {
  std::string bos, eos;            // spelling of the model's tokens; empty = none
  std::function<std::tm()> clock;  // for templates that print the date; empty = the local time
};

TemplateSetting template_setting(const Tokenizer& tokenizer);

// Reads a template. Throws Error(model) with line and column for what is wrong or not supported in it, saying how to go
// on without (`prompt.chat: false`); never falls back to a default.
std::unique_ptr<ChatTemplate> make_chat_template(std::string_view jinja_text, std::string_view where,
                                                 TemplateSetting setting = {});

std::string text_of(const std::vector<ChatSegment>& segments);

// Ids of a rendered chat: control tokens of template text are parsed, message text never is; plain text of template and
// message between two parsed control tokens is tokenized as one run. BOS is in front when the model asks for one, once.
std::vector<TokenId> encode_chat(const Tokenizer& tokenizer, const std::vector<ChatSegment>& segments);

// The template's markers that are not one token each: to such a model they are plain text, so that the template was
// made for another.
std::vector<std::string> unknown_markers(const ChatTemplate& chat, const Tokenizer& tokenizer);

}  // namespace tandem
