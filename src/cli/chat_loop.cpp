#include "src/cli/chat_loop.h"

#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "src/base/error.h"
#include "src/base/option_text.h"
#include "src/cli/draft_colours.h"
#include "src/cli/terminal.h"
#include "src/engine/conversation_file.h"
#include "src/engine/file_hash.h"
#include "src/engine/report.h"
#include "src/engine/session_file.h"

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;

std::string dim(const std::string& text) {
  return wants_colour("auto", 2) ? fmt::format("\033[2m{}\033[0m", text) : text;
}

// What made a conversation: enough to go on with it, and to see that another run goes on otherwise.
Json about(const Session& session) {
  return {{"tandem", kVersion},
          {"model", to_valid_utf8(session.target().file->name())},
          {"model_sha256", file_sha256(session.target().path())},
          {"template", session.template_name()},
          {"seed", session.seed()},
          {"config", to_valid_utf8(to_yaml(session.config()))}};
}

std::string_view without_ends(std::string_view text) {
  constexpr const char* kBlank = " \t\n";
  const std::size_t begin = text.find_first_not_of(kBlank);
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) + 1 - begin);
}

}  // namespace

struct ChatLoop::Command {
  std::string name;
  const char* argument;  // null: takes none
  const char* help;
  void (ChatLoop::*run)(const std::string&);
};

const std::vector<ChatLoop::Command>& ChatLoop::commands() {
  static const std::vector<Command> all{
      {"reset", nullptr, "begin anew; the system prompt stays", &ChatLoop::reset},
      {"system", "[TEXT]", "show the system prompt, or set it for the whole conversation (\"\" for none)",
       &ChatLoop::system},
      {"stats", nullptr, "figures of the conversation so far", &ChatLoop::stats},
      {"save", "FILE", "write the conversation as JSON, and the cache to the session file if there is one",
       &ChatLoop::save},
      {"load", "FILE", "go on from such a JSON file", &ChatLoop::load_or_say_why},
      {"config", nullptr, "the effective settings", &ChatLoop::config},
      {"help", nullptr, "this list", &ChatLoop::help},
      {"exit", nullptr, "leave, as Ctrl-D does", &ChatLoop::leave}};
  return all;
}

ChatLoop::ChatLoop(Session& session, LineReader& lines, const ChatOptions& options)
    : session_(session),
      lines_(lines),
      options_(options),
      conversation_(session.config().prompt.system,
                    [&session](const std::vector<ChatMessage>& messages) { return session.encode_messages(messages); },
                    {.context = session.context(),
                     .answer = session.config().stop.max_tokens,
                     .drop = session.config().runtime.context_full == "drop_oldest_turns"}) {}

int ChatLoop::run() {
  while (!left_ && !reader_gone_ && !terminated()) {
    const ChatEntry entry = read_entry(lines_);
    if (entry.kind == ChatEntry::Kind::end) break;
    if (entry.kind == ChatEntry::Kind::interrupted) {
      if (!on_interrupted()) break;
      continue;
    }
    interrupts_ = 0;
    if (entry.kind == ChatEntry::Kind::command) {
      obey(entry.text);
    } else if (!without_ends(entry.text).empty()) {
      ask(entry.text);
    }
  }
  if (!options_.session_file.empty() && turn_ > 0) save_session();
  const bool stopped = terminated() || reader_gone_ || (interrupts_ > 0 && !lines_.interactive());
  return stopped ? 130 : failed_ > 0 && !lines_.interactive() ? 1 : 0;
}

// At the prompt the first Ctrl-C clears the line and a second one leaves; without a terminal the first one leaves.
bool ChatLoop::on_interrupted() {
  take_interrupt();
  if (++interrupts_ > 1 || !lines_.interactive() || terminated()) return false;
  say(dim("(Ctrl-C again or Ctrl-D leaves)") + "\n");
  return true;
}

void ChatLoop::refuse(std::string_view sentence) {
  ++failed_;
  say(fmt::format("tandem: {}\n", sentence));
}

void ChatLoop::ask(const std::string& text) {
  ++turn_;
  warn(session_.marker_warning(text));
  bool asked = false;
  try {
    const TurnPrompt prompt = conversation_.ask(text);
    asked = true;
    tell_dropped(prompt);
    finish_turn(prompt, stream(prompt));
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::input && error.kind() != ErrorKind::numeric) throw;
    if (asked) conversation_.take_back();
    refuse(error.what());
    if (options_.json) write_json({{"turn", turn_}, {"error", to_valid_utf8(error.what())}}, false);
  }
}

GenerationResult ChatLoop::stream(const TurnPrompt& prompt) {
  Generation generation(session_.engine(), session_.tokenizer(), prompt.ids, session_.stop_rules(&interrupted()),
                        prompt.dropped_tokens);
  {
    ProgressBar bar("prefill");
    while (generation.prefill()) bar.show(generation.prefilled(), generation.prompt_tokens());
  }
  DraftColours colours(wants_colour(options_.colour, 1));
  for (bool more = true; more;) {
    more = generation.advance();
    const std::string text = generation.take_text();
    warn(session_.engine().drafter().take_warning());
    if (options_.json || text.empty() || reader_gone_) continue;
    if (!write_stdout(colours.paint(text, generation.origins()))) {
      reader_gone_ = true;
      request_stop();
    }
  }
  return generation.result();
}

void ChatLoop::finish_turn(const TurnPrompt& prompt, const GenerationResult& result) {
  take_interrupt();
  if (result.ids.empty()) {
    conversation_.take_back();
  } else {
    conversation_.answer(result.text);
  }
  results_.push_back(result);
  if (options_.json) {
    Json json = {{"turn", turn_}};
    json.update(to_json(result, session_));
    json["dropped_turns"] = prompt.dropped ? prompt.dropped->turns : 0;
    json["dropped_tokens"] = prompt.dropped_tokens;
    if (!write_json(json, false)) reader_gone_ = true;
  } else if (!reader_gone_ && !write_stdout("\n")) {
    reader_gone_ = true;
  }
  if (!options_.quiet) say(dim(fmt::format("[{}]", turn_summary(result, session_))) + "\n");
  if (result.ids.empty()) say("tandem: nothing was answered, so the message was taken back\n");
}

void ChatLoop::tell_dropped(const TurnPrompt& prompt) const {
  if (!prompt.dropped) return;
  const DroppedTurns& d = *prompt.dropped;
  std::string text = fmt::format(
      "the context is full: dropped the oldest {} turns ({} messages, {} tokens); {} ids remain, the first {} as "
      "before",
      d.turns, d.messages, d.tokens, d.ids, d.front);
  if (d.one_cut) text += fmt::format(" and those from {} on", d.front + d.tokens);
  say(fmt::format("tandem: {}\n", text));
  if (options_.verbose) say(fmt::format("tandem: ids: {}\n", fmt::join(prompt.ids, " ")));
}

void ChatLoop::obey(const std::string& line) {
  const std::size_t space = line.find_first_of(" \t\n");
  const std::string name = line.substr(1, space == line.npos ? line.npos : space - 1);
  const std::string argument(space == line.npos ? "" : without_ends(std::string_view(line).substr(space)));
  std::vector<std::string> names;
  for (const Command& command : commands()) {
    names.push_back(command.name);
    if (command.name != name) continue;
    if (command.argument == nullptr && !argument.empty()) {
      return refuse(fmt::format("/{}: expected nothing behind it, got {}", name, argument));
    }
    if (command.argument != nullptr && command.argument[0] != '[' && argument.empty()) {
      return refuse(fmt::format("/{}: expected {}, got nothing", name, command.argument));
    }
    return (this->*command.run)(argument);
  }
  const auto near = nearest_name(name, names);
  refuse(
      fmt::format("unknown command /{}{}; nothing was sent (/help lists them; a message that begins with a slash goes "
                  "between \"\"\" and \"\"\")",
                  name, near ? fmt::format(" (did you mean /{}?)", *near) : ""));
}

void ChatLoop::reset(const std::string&) {
  conversation_.reset();
  results_.clear();
  say("the conversation begins anew\n");
}

void ChatLoop::system(const std::string& text) {
  if (!text.empty()) conversation_.set_system(text == "\"\"" ? "" : text);
  const std::string& now = conversation_.state().system;
  say(fmt::format("system prompt: {}\n", now.empty() ? "none of its own" : now));
}

void ChatLoop::stats(const std::string&) {
  const ConversationState& state = conversation_.state();
  const Engine& engine = session_.engine();
  say(fmt::format("conversation: {} messages, of which {} ({} tokens) were dropped; cache: {} of {} tokens\n",
                  state.messages.size(), state.first_kept, state.dropped_tokens, engine.cache().size(),
                  session_.context()));
  say(fmt::format("{}\n", results_.empty() ? "no answer yet" : human_totals(results_)));
}

void ChatLoop::save_session() const {
  const int tokens = write_session_file(options_.session_file, session_);
  if (!options_.quiet) say(fmt::format("session file {}: {} tokens\n", options_.session_file, tokens));
}

void ChatLoop::save(const std::string& path) {
  try {
    write_conversation(path, conversation_.state(), about(session_));
    say(fmt::format("saved {} messages to {}\n", conversation_.state().messages.size(), path));
    if (!options_.session_file.empty()) save_session();
  } catch (const Error& error) {
    refuse(error.what());
  }
}

void ChatLoop::load(const std::string& path) {
  SavedConversation saved = read_conversation(path);
  conversation_.restore(std::move(saved.state));
  say(fmt::format("loaded {} messages from {}\n", conversation_.state().messages.size(), path));
  if (!saved.about.is_object()) return;
  std::vector<std::string> differing;
  const Json here = about(session_);
  for (const char* name : {"model", "model_sha256", "template", "config"}) {  // a seed that matters is in the config
    if (saved.about.contains(name) && saved.about[name] != here[name]) differing.emplace_back(name);
  }
  if (!differing.empty()) {
    say(fmt::format(
        "tandem: warning: {} was saved by a run with another {}; the conversation goes on with this one's\n", path,
        fmt::join(differing, ", ")));
  }
}

void ChatLoop::load_or_say_why(const std::string& path) {
  try {
    load(path);
  } catch (const Error& error) {
    refuse(error.what());
  }
}

void ChatLoop::config(const std::string&) {
  say(fmt::format("{}# of this run: seed {}, backend {}, context {}\n", to_yaml(session_.config()), session_.seed(),
                  session_.backend().name(), session_.context()));
}

void ChatLoop::help(const std::string&) {
  for (const Command& command : commands()) {
    const std::string use = fmt::format("/{} {}", command.name, command.argument ? command.argument : "");
    say(fmt::format("  {:<16}{}\n", use, command.help));
  }
  say("A line that ends with \\ goes on with the next; \"\"\" begins a message of several lines and ends it.\n"
      "Ctrl-C stops an answer, which stays as far as it came; at the prompt it clears the line, and twice it "
      "leaves.\n");
  if (wants_colour(options_.colour, 1)) {
    say(fmt::format("Coloured text was drafted and accepted, by source: {}\n", DraftColours::legend()));
  }
}

}  // namespace tandem
