#include "src/text/chat_template.h"

#include <algorithm>
#include <array>
#include <utility>

#include "src/base/error.h"
#include "src/text/known_templates.h"
#include "src/text/special_tokens.h"

namespace tandem {
namespace {

constexpr std::string_view kStart = "<|im_start|>";
constexpr std::string_view kEnd = "<|im_end|>";
constexpr std::array<std::string_view, 3> kRoles = {"system", "user", "assistant"};

// ChatML: every turn between the two marks, and a system turn put first when the messages bring none.
class ChatMl : public ChatTemplate {
 public:
  ChatMl(std::string_view name, std::string_view default_system) : name_(name), default_system_(default_system) {}

  std::vector<ChatSegment> render(const std::vector<ChatMessage>& messages) const override {
    check(messages);
    std::vector<ChatSegment> segments;
    std::string open;
    if (messages.front().role != "system") open = fmt::format("{}system\n{}{}\n", kStart, default_system_, kEnd);
    for (const ChatMessage& message : messages) {
      open += fmt::format("{}{}\n", kStart, message.role);
      segments.push_back({std::exchange(open, fmt::format("{}\n", kEnd)), true});
      segments.push_back({message.content, false});
    }
    segments.push_back({open + fmt::format("{}assistant\n", kStart), true});
    return segments;
  }

  std::vector<std::string> markers() const override { return {std::string(kStart), std::string(kEnd)}; }
  std::string_view name() const override { return name_; }

 private:
  void check(const std::vector<ChatMessage>& messages) const {
    if (messages.empty()) fail(ErrorKind::input, "chat template {}: expected at least one message, got none", name_);
    for (std::size_t i = 0; i < messages.size(); ++i) {
      const std::string& role = messages[i].role;
      if (std::find(kRoles.begin(), kRoles.end(), role) == kRoles.end()) {
        fail(ErrorKind::input, "chat template {}: message {}: expected role system, user or assistant, got \"{}\"",
             name_, i + 1, role);
      }
    }
  }

  std::string_view name_;
  std::string_view default_system_;
};

}  // namespace

std::unique_ptr<ChatTemplate> make_chat_template(std::string_view jinja_text, std::string_view where) {
  switch (known_template(jinja_text)) {
    case KnownTemplate::qwen2:
      return std::make_unique<ChatMl>("chatml (qwen2)",
                                      "You are Qwen, created by Alibaba Cloud. You are a helpful assistant.");
    case KnownTemplate::smollm2:
      return std::make_unique<ChatMl>("chatml (smollm2)",
                                      "You are a helpful AI assistant named SmolLM, trained by Hugging Face");
    case KnownTemplate::none:
      break;
  }
  fail(
      ErrorKind::model,
      "{}: tokenizer.chat_template: expected the exact template of Qwen2.5 or SmolLM2, got {}; with prompt.chat: false "
      "the prompt is taken as it stands, so write the model's own turn marks into it",
      where, jinja_text.empty() ? "none" : fmt::format("another text of {} bytes", jinja_text.size()));
}

std::string text_of(const std::vector<ChatSegment>& segments) {
  std::string text;
  for (const ChatSegment& segment : segments) text += segment.text;
  return text;
}

std::vector<TokenId> encode_chat(const Tokenizer& tokenizer, const std::vector<ChatSegment>& segments) {
  const SpecialTokens control(tokenizer.vocabulary(), Spelled::control);
  std::vector<TokenId> ids;
  std::string run;  // plain text since the last control token of the template
  const auto encode_run = [&] {
    const std::vector<TokenId> plain = tokenizer.encode(run, Specials::literal);
    ids.insert(ids.end(), plain.begin(), plain.end());
    run.clear();
  };
  for (const ChatSegment& segment : segments) {
    if (!segment.from_template) {
      run += segment.text;
      continue;
    }
    std::size_t at = 0;
    while (at < segment.text.size()) {
      const SpecialTokens::Match match = control.find(segment.text, at);
      run.append(segment.text, at, match.begin - at);
      at = match.begin + match.length;
      if (match.length == 0) break;
      encode_run();
      ids.push_back(match.id);
    }
  }
  encode_run();
  return tokenizer.with_bos(std::move(ids));
}

std::vector<std::string> unknown_markers(const ChatTemplate& chat, const Tokenizer& tokenizer) {
  std::vector<std::string> unknown;
  for (std::string& marker : chat.markers()) {
    if (tokenizer.encode(marker, Specials::parse, Place::goes_on).size() != 1) unknown.push_back(std::move(marker));
  }
  return unknown;
}

}  // namespace tandem
