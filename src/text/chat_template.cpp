#include "src/text/chat_template.h"

#include <algorithm>
#include <array>
#include <utility>

#include "src/base/error.h"
#include "src/text/jinja/json_text.h"
#include "src/text/jinja/template.h"
#include "src/text/special_tokens.h"

namespace tandem {
namespace {

using jinja::Value;

constexpr std::array<std::string_view, 5> kRoles = {"system", "user", "assistant", "tool", "developer"};

std::uint64_t hash_of(std::string_view text) {  // FNV-1a
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

// Where a word in angle brackets that looks like a control token (<|im_end|>, <end_of_turn>) begins in `text`, and its
// length; 0: nowhere. Plain words such as <think> or [INST] are no tokens of many models that use them.
std::pair<std::size_t, std::size_t> find_marker(std::string_view text, std::size_t from) {
  for (std::size_t begin = text.find('<', from); begin != std::string_view::npos; begin = text.find('<', begin + 1)) {
    const std::size_t end = text.find_first_of("> \n\t<", begin + 1);
    if (end == std::string_view::npos || text[end] != '>' || end - begin > 60) continue;
    const std::string_view word = text.substr(begin, end + 1 - begin);
    const bool marked = word.find('|') != std::string_view::npos || word.find("\uff5c") != std::string_view::npos;
    if (marked || word.find("_of_") != std::string_view::npos) return {begin, word.size()};
  }
  return {0, 0};
}

class JinjaTemplate : public ChatTemplate {
 public:
  JinjaTemplate(std::string_view text, std::string_view where, TemplateSetting setting)
      : where_(fmt::format("{}: tokenizer.chat_template", where)),
        template_(text, where_),
        setting_(std::move(setting)),
        markers_(find_markers()),
        name_(fmt::format("{} ({:016x})", markers_.empty() ? "jinja" : markers_.front(), hash_of(text))) {
    if (!setting_.clock) setting_.clock = jinja::local_time;
  }

  std::vector<ChatSegment> render_request(const ChatRequest& request) const override {
    check(request);
    const jinja::MarkedText text =
        template_.render([&](jinja::Runtime& runtime) { return variables(runtime, request); }, setting_.clock);
    std::vector<ChatSegment> segments;
    std::size_t begin = 0;
    for (const auto& run : text.runs()) {
      segments.push_back({text.bytes().substr(begin, run.end - begin), !run.input});
      begin = run.end;
    }
    return segments;
  }

  std::vector<std::string> markers() const override { return markers_; }
  std::string_view name() const override { return name_; }

 private:
  // A role takes part in what the template spells, so it must be a name that is known to mean something.
  void check(const ChatRequest& request) const {
    if (!request.messages.is_array() || request.messages.empty()) {
      fail(ErrorKind::input, "{}: expected at least one message, got none", where_);
    }
    for (std::size_t i = 0; i < request.messages.size(); ++i) {
      const auto& message = request.messages[i];
      const auto role = message.is_object() ? message.find("role") : message.end();
      if (!message.is_object() || role == message.end() || !role->is_string()) {
        fail(ErrorKind::input, "{}: message {}: expected an object with a role", where_, i + 1);
      }
      if (!knows_role(role->get_ref<const std::string&>())) {
        fail(ErrorKind::input,
             "{}: message {}: expected role system, user, assistant, tool, developer or one that the template names, "
             "got \"{}\"",
             where_, i + 1, role->get_ref<const std::string&>());
      }
    }
  }

  bool knows_role(const std::string& role) const {
    if (std::find(kRoles.begin(), kRoles.end(), role) != kRoles.end()) return true;
    const bool plain = !role.empty() && std::all_of(role.begin(), role.end(), [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    });
    return plain && template_.strings().contains(role);
  }

  Value message_value(jinja::Runtime& runtime, const ChatRequest::Json& message) const {
    std::vector<std::pair<Value, Value>> entries;
    for (const auto& [key, value] : message.items()) {
      const bool is_role = key == "role";
      entries.emplace_back(runtime.text(jinja::MarkedText(key, true)), jinja::from_json(runtime, value, is_role));
    }
    return runtime.dict(std::move(entries));
  }

  jinja::Variables variables(jinja::Runtime& runtime, const ChatRequest& request) const {
    std::vector<Value> messages;
    for (const auto& message : request.messages) messages.push_back(message_value(runtime, message));
    jinja::Variables all = {{"messages", runtime.list(std::move(messages))},
                            {"tools", jinja::from_json(runtime, request.tools)},
                            {"documents", jinja::from_json(runtime, request.documents)},
                            {"add_generation_prompt", Value(request.add_generation_prompt)},
                            {"bos_token", jinja::literal(setting_.bos)},
                            {"eos_token", jinja::literal(setting_.eos)}};
    for (const auto& [name, value] : request.variables.items()) {
      const auto known =
          std::find_if(all.begin(), all.end(), [&name = name](const auto& v) { return v.first == name; });
      if (known != all.end()) fail(ErrorKind::input, "{}: variable {} is not free to be set", where_, name);
      all.emplace_back(name, jinja::from_json(runtime, value));
    }
    return all;
  }

  // What the template writes around a conversation, or around one without a system turn where it takes none.
  std::vector<std::string> find_markers() const {
    const std::vector<std::vector<std::string_view>> probes = {
        {"system", "user", "assistant", "user"}, {"user", "assistant", "user"}, {"user"}};
    for (const auto& roles : probes) {
      ChatRequest request;
      for (const std::string_view role : roles) request.messages.push_back({{"role", role}, {"content", "x"}});
      try {
        return markers_in(
            template_.render([&](jinja::Runtime& runtime) { return variables(runtime, request); }, jinja::local_time));
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::input) return {};
      }
    }
    return {};
  }

  std::vector<std::string> markers_in(const jinja::MarkedText& text) const {
    std::vector<std::string> found;
    std::size_t at = 0;
    while (true) {
      const auto [begin, length] = find_marker(text.bytes(), at);
      if (length == 0) return found;
      at = begin + length;
      std::string marker = text.bytes().substr(begin, length);
      const bool known = std::find(found.begin(), found.end(), marker) != found.end();
      if (!known && marker != setting_.bos) found.push_back(std::move(marker));
    }
  }

  std::string where_;
  jinja::Template template_;
  TemplateSetting setting_;
  std::vector<std::string> markers_;
  std::string name_;
};

}  // namespace

std::vector<ChatSegment> ChatTemplate::render(const std::vector<ChatMessage>& messages) const {
  ChatRequest request;
  for (const ChatMessage& message : messages) {
    request.messages.push_back({{"role", message.role}, {"content", message.content}});
  }
  return render_request(request);
}

TemplateSetting template_setting(const Tokenizer& tokenizer) {
  const Vocabulary& vocabulary = tokenizer.vocabulary();
  TemplateSetting setting;
  if (vocabulary.bos) setting.bos = tokenizer.bytes(*vocabulary.bos, true);
  if (vocabulary.eos) setting.eos = tokenizer.bytes(*vocabulary.eos, true);
  return setting;
}

std::unique_ptr<ChatTemplate> make_chat_template(std::string_view jinja_text, std::string_view where,
                                                 TemplateSetting setting) {
  try {
    return std::make_unique<JinjaTemplate>(jinja_text, where, std::move(setting));
  } catch (const Error& error) {
    fail(error.kind(),
         "{}; with prompt.chat: false the prompt is taken as it stands, so write the model's own turn marks into it",
         error.what());
  }
}

std::string text_of(const std::vector<ChatSegment>& segments) {
  std::string text;
  for (const ChatSegment& segment : segments) text += segment.text;
  return text;
}

std::vector<TokenId> encode_chat(const Tokenizer& tokenizer, const std::vector<ChatSegment>& segments) {
  const SpecialTokens& control = tokenizer.control_tokens();
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
