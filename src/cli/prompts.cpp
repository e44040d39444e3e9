#include "src/cli/prompts.h"

#include <nlohmann/json.hpp>
#include <sstream>

#include "src/base/error.h"
#include "src/cli/terminal.h"

namespace tandem {
namespace {

PromptRow parse_row(const nlohmann::json& json, const std::string& where) {
  const auto text = [&](const nlohmann::json& object, const char* key) -> std::string {
    if (!object.is_object() || !object.contains(key) || !object[key].is_string()) {
      fail(ErrorKind::usage, "{}: {}: expected a text", where, key);
    }
    return object[key];
  };
  PromptRow row;
  row.id = text(json, "id");
  row.task = json.contains("task") ? text(json, "task") : "";
  if (json.contains("max_tokens")) {
    const nlohmann::json& value = json["max_tokens"];
    if (!value.is_number_integer() || value < 1 || value > 1000000000) {
      fail(ErrorKind::usage, "{}: max_tokens: expected an integer of at least 1, got {}", where, value.dump());
    }
    row.max_tokens = value.get<int>();
  }
  if (json.contains("prompt")) {
    row.messages.push_back({"user", text(json, "prompt")});
    return row;
  }
  if (!json.contains("messages") || !json["messages"].is_array() || json["messages"].empty()) {
    fail(ErrorKind::usage, "{}: messages: expected a non-empty list of objects with role and content", where);
  }
  for (const nlohmann::json& message : json["messages"])
    row.messages.push_back({text(message, "role"), text(message, "content")});
  return row;
}

}  // namespace

std::string PromptRow::raw_text() const {
  std::string text;
  for (const ChatMessage& message : messages) text += (text.empty() ? "" : "\n\n") + message.content;
  return text;
}

std::vector<PromptRow> read_prompts(const std::string& path) {
  std::istringstream lines(read_file(path));
  std::vector<PromptRow> rows;
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const std::string where = fmt::format("{}:{}", path, number);
    const nlohmann::json json = nlohmann::json::parse(line, nullptr, false);
    if (!json.is_object()) fail(ErrorKind::usage, "{}: expected one JSON object a line", where);
    rows.push_back(parse_row(json, where));
  }
  if (rows.empty()) fail(ErrorKind::usage, "{}: expected at least one prompt, got none", path);
  return rows;
}

std::vector<std::vector<TokenId>> encode_prompts(const std::string& path, const std::vector<PromptRow>& rows,
                                                 const Session& session) {
  std::vector<std::vector<TokenId>> prompts;
  for (const PromptRow& row : rows) {
    prompts.push_back(session.chat() ? session.encode_chat(row.messages) : session.encode_raw(row.raw_text()));
    const auto size = static_cast<int>(prompts.back().size());
    if (size < 1 || size >= session.context()) {
      fail(ErrorKind::input, "{}: prompt {}: expected 1..{} tokens, less than the context (target.context), got {}",
           path, row.id, session.context() - 1, size);
    }
  }
  return prompts;
}

}  // namespace tandem
