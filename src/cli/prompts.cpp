#include "src/cli/prompts.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "src/base/option_text.h"
#include "src/cli/terminal.h"

namespace tandem {
namespace {

using Json = nlohmann::json;

constexpr int kMostTokens = 1000000000;

std::string text_at(const Json& object, const char* key, const std::string& where) {
  if (!object.is_object()) fail(ErrorKind::usage, "{}: expected an object with {}, got {}", where, key, object.dump());
  const auto value = object.find(key);
  if (value == object.end()) fail(ErrorKind::usage, "{}: {}: expected a text, got nothing", where, key);
  if (!value->is_string()) fail(ErrorKind::usage, "{}: {}: expected a text, got {}", where, key, value->dump());
  return *value;
}

std::vector<ChatMessage> messages_of(const Json& row, const std::string& where) {
  if (row.contains("prompt")) {
    if (row.contains("messages")) fail(ErrorKind::usage, "{}: expected prompt or messages, got both", where);
    return {{"user", text_at(row, "prompt", where)}};
  }
  const auto list = row.find("messages");
  if (list == row.end() || !list->is_array() || list->empty()) {
    fail(ErrorKind::usage, "{}: messages: expected a non-empty list of objects with role and content, got {}", where,
         list == row.end() ? "nothing" : list->dump());
  }
  std::vector<ChatMessage> messages;
  for (const Json& message : *list) {
    const std::string place = fmt::format("{}: messages[{}]", where, messages.size());
    messages.push_back({text_at(message, "role", place), text_at(message, "content", place)});
  }
  return messages;
}

std::optional<int> max_tokens_of(const Json& row, const std::string& where) {
  const auto value = row.find("max_tokens");
  if (value == row.end()) return std::nullopt;
  if (!value->is_number_integer() || *value < 1 || *value > kMostTokens) {
    fail(ErrorKind::usage, "{}: max_tokens: expected an integer 1..{}, got {}", where, kMostTokens, value->dump());
  }
  return value->get<int>();
}

PromptRow parse_row(const std::string& line, int number, const std::string& where) {
  Json json;
  try {
    json = Json::parse(line);
  } catch (const Json::parse_error& error) {
    fail(ErrorKind::usage, "{}: expected one JSON object a line, got what is no JSON at byte {}", where, error.byte);
  }
  if (!json.is_object()) {
    fail(ErrorKind::usage, "{}: expected one JSON object a line, got {}", where, json.type_name());
  }
  return {.id = text_at(json, "id", where),
          .task = json.contains("task") ? text_at(json, "task", where) : "",
          .messages = messages_of(json, where),
          .max_tokens = max_tokens_of(json, where),
          .line = number};
}

std::vector<PromptRow> read_rows(const std::string& path) {
  std::istringstream lines(read_file(path));
  std::vector<PromptRow> rows;
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    rows.push_back(parse_row(line, number, fmt::format("{}:{}", path, number)));
  }
  if (rows.empty()) fail(ErrorKind::usage, "{}: expected at least one prompt, got none", path);
  return rows;
}

void require_known_tasks(const PromptChoice& choice, const std::vector<PromptRow>& rows) {
  std::vector<std::string> known;
  for (const PromptRow& row : rows) {
    if (!row.task.empty() && std::find(known.begin(), known.end(), row.task) == known.end()) known.push_back(row.task);
  }
  for (const std::string& task : choice.tasks) {
    if (std::find(known.begin(), known.end(), task) != known.end()) continue;
    if (known.empty()) fail(ErrorKind::usage, "--task {}: no prompt of {} has a task", task, choice.file);
    const auto near = nearest_name(task, known);
    fail(ErrorKind::usage, "--task {}: expected {}, the tasks of {}{}", task, joined_choices(known), choice.file,
         near ? fmt::format(" (did you mean {}?)", *near) : "");
  }
}

}  // namespace

std::string PromptRow::raw_text() const {
  std::string text;
  for (const ChatMessage& message : messages) text += (text.empty() ? "" : "\n\n") + message.content;
  return text;
}

CLI::Option* add_prompt_options(CLI::App& command, PromptChoice& choice) {
  CLI::Option* prompts =
      command.add_option("--prompts", choice.file, "JSON lines with id, task, messages (or prompt) and max_tokens");
  command.add_option("--task", choice.tasks, "Only prompts of this task (repeatable)")
      ->allow_extra_args(false)
      ->needs(prompts);
  command.add_option("--limit", choice.limit, "Only the first prompts; 0 is all")
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str()
      ->needs(prompts);
  return prompts;
}

std::vector<PromptRow> read_prompts(const PromptChoice& choice) {
  std::vector<PromptRow> rows = read_rows(choice.file);
  if (!choice.tasks.empty()) {
    require_known_tasks(choice, rows);
    std::erase_if(rows, [&](const PromptRow& row) {
      return std::find(choice.tasks.begin(), choice.tasks.end(), row.task) == choice.tasks.end();
    });
  }
  if (choice.limit > 0 && rows.size() > static_cast<std::size_t>(choice.limit)) {
    rows.resize(static_cast<std::size_t>(choice.limit));
  }
  return rows;
}

std::vector<TokenId> encode_prompt(const PromptRow& row, const Session& session) {
  std::vector<TokenId> ids = session.chat() ? session.encode_chat(row.messages) : session.encode_raw(row.raw_text());
  const auto size = static_cast<int>(ids.size());
  if (size < 1 || size >= session.context()) {
    fail(ErrorKind::input, "expected 1..{} tokens, less than the context (target.context), got {}",
         session.context() - 1, size);
  }
  return ids;
}

StopRules prompt_rules(const PromptRow& row, const Session& session, int most_tokens) {
  StopRules rules = session.stop_rules(&interrupted());
  if (row.max_tokens) rules.max_tokens = std::min(rules.max_tokens, *row.max_tokens);
  if (most_tokens > 0) rules.max_tokens = std::min(rules.max_tokens, most_tokens);
  return rules;
}

std::string PromptFailures::note(const PromptRow& row, const char* what, ProgressBar* bar) {
  std::string sentence = fmt::format("{}:{}: prompt {}: {}", file_, row.line, row.id, what);
  if (bar != nullptr) bar->wipe();
  say(fmt::format("tandem: {}\n", sentence));
  ids_.push_back(row.id);
  return sentence;
}

std::string PromptFailures::summary(std::size_t prompts) const {
  if (ids_.empty()) return {};
  return fmt::format("{} of {} prompts failed: {}", ids_.size(), prompts, fmt::join(ids_, ", "));
}

}  // namespace tandem
