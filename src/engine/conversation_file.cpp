#include "src/engine/conversation_file.h"

#include "src/base/atomic_file.h"
#include "src/base/error.h"
#include "src/base/mapped_file.h"
#include "src/text/text_stream.h"

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;

// JSON holds no bytes that are not UTF-8, which an answer that was stopped within a character ends with: such a text
// is kept as numbers beside what can be read of it.
Json to_json(const ChatMessage& message) {
  const std::string& text = message.content;
  const std::string readable = to_valid_utf8(text);
  Json json = {{"role", message.role}, {"content", readable}};
  if (readable != text) json["bytes"] = std::vector<std::uint8_t>(text.begin(), text.end());
  return json;
}

const Json& member(const Json& object, const char* key, const std::string& where) {
  if (!object.is_object()) fail(ErrorKind::file, "{}: expected an object with {}, got {}", where, key, object.dump());
  const auto found = object.find(key);
  if (found == object.end()) fail(ErrorKind::file, "{}: {}: expected a value, got nothing", where, key);
  return *found;
}

std::string text_at(const Json& object, const char* key, const std::string& where) {
  const Json& value = member(object, key, where);
  if (!value.is_string()) fail(ErrorKind::file, "{}: {}: expected a text, got {}", where, key, value.dump());
  return value;
}

std::uint64_t count_at(const Json& object, const char* key, std::uint64_t most, const std::string& where) {
  const auto value = object.find(key);
  if (value == object.end()) return 0;
  if (!value->is_number_unsigned() || value->get<std::uint64_t>() > most) {
    fail(ErrorKind::file, "{}: {}: expected an integer 0..{}, got {}", where, key, most, value->dump());
  }
  return *value;
}

std::string bytes_of(const Json& list, const std::string& where) {
  std::string bytes;
  if (!list.is_array()) fail(ErrorKind::file, "{}: bytes: expected a list, got {}", where, list.dump());
  for (const Json& byte : list) {
    if (!byte.is_number_unsigned() || byte.get<std::uint64_t>() > 255) {
      fail(ErrorKind::file, "{}: bytes: expected integers 0..255, got {}", where, byte.dump());
    }
    bytes += static_cast<char>(byte.get<std::uint8_t>());
  }
  return bytes;
}

ChatMessage message_of(const Json& json, const std::string& where) {
  ChatMessage message{text_at(json, "role", where), text_at(json, "content", where)};
  if (message.role != "system" && message.role != "user" && message.role != "assistant") {
    fail(ErrorKind::file, "{}: role: expected system, user or assistant, got \"{}\"", where, message.role);
  }
  if (const auto bytes = json.find("bytes"); bytes != json.end()) message.content = bytes_of(*bytes, where);
  return message;
}

Json parse(const std::string& path) {
  const MappedFile file(path);
  const auto* text = reinterpret_cast<const char*>(file.bytes().data());
  try {
    return Json::parse(text, text + file.bytes().size());
  } catch (const Json::parse_error& error) {
    fail(ErrorKind::file, "{}: expected a JSON object with messages, got what is no JSON at byte {}", path, error.byte);
  }
}

}  // namespace

void write_conversation(const std::string& path, const ConversationState& state, const Json& about) {
  Json list = Json::array();
  if (!state.system.empty()) list.push_back(to_json({"system", state.system}));
  for (const ChatMessage& message : state.messages) list.push_back(to_json(message));
  const Json json = {{"about", about},
                     {"dropped_messages", state.first_kept},
                     {"dropped_tokens", state.dropped_tokens},
                     {"messages", std::move(list)}};
  AtomicFile file(path);
  file.write(json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
  file.commit();
}

SavedConversation read_conversation(const std::string& path) {
  const Json json = parse(path);
  const Json& list = member(json, "messages", path);
  if (!list.is_array()) fail(ErrorKind::file, "{}: messages: expected a list, got {}", path, list.dump());
  SavedConversation saved;
  ConversationState& state = saved.state;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string where = fmt::format("{}: messages[{}]", path, i);
    ChatMessage message = message_of(list[i], where);
    if (i == 0 && message.role == "system") {
      state.system = std::move(message.content);
    } else {
      state.messages.push_back(std::move(message));
    }
  }
  state.first_kept = count_at(json, "dropped_messages", state.messages.size(), path);
  state.dropped_tokens = static_cast<std::uint32_t>(count_at(json, "dropped_tokens", UINT32_MAX, path));
  saved.about = json.value("about", Json());
  return saved;
}

}  // namespace tandem
