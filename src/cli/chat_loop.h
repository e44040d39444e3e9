// A conversation with a user: reads entries, streams answers, obeys commands.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "src/cli/chat_entry.h"
#include "src/engine/conversation.h"
#include "src/engine/session.h"

namespace tandem {

struct ChatOptions {
  std::string session_file;  // the cache on disk; empty: none
  std::string colour;        // of accepted drafts: auto, always or never
  bool json = false;         // one JSON object a turn on stdout, in place of text
  bool quiet = false;        // no line of figures after an answer
  bool verbose = false;      // all ids that remain when turns are dropped
};

class ChatLoop {
 public:
  // All outlive the loop.
  ChatLoop(Session& session, LineReader& lines, const ChatOptions& options);

  void load(const std::string& path);  // as /load; throws Error
  // Until the user leaves. Returns the exit code.
  int run();

 private:
  struct Command;
  static const std::vector<Command>& commands();

  void ask(const std::string& text);
  GenerationResult stream(const TurnPrompt& prompt);
  void finish_turn(const TurnPrompt& prompt, const GenerationResult& result);
  void refuse(std::string_view sentence);
  void tell_dropped(const TurnPrompt& prompt) const;
  bool on_interrupted();
  void obey(const std::string& line);

  void reset(const std::string&);
  void system(const std::string& text);
  void stats(const std::string&);
  void save(const std::string& path);
  void load_or_say_why(const std::string& path);
  void config(const std::string&);
  void help(const std::string&);
  void leave(const std::string&) { left_ = true; }
  void save_session() const;

  Session& session_;
  LineReader& lines_;
  const ChatOptions& options_;
  Conversation conversation_;
  std::vector<GenerationResult> results_;
  int turn_ = 0;        // messages that were sent
  int failed_ = 0;      // entries that were refused
  int interrupts_ = 0;  // in a row, at the prompt
  bool left_ = false, reader_gone_ = false;
};

}  // namespace tandem
