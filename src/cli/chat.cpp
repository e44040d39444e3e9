// tandem chat: a conversation on the terminal or through a pipe, whose turns keep the cache.
#include <fmt/format.h>

#include <memory>

#include "src/base/atomic_file.h"
#include "src/base/error.h"
#include "src/cli/chat_loop.h"
#include "src/cli/commands.h"
#include "src/cli/terminal.h"
#include "src/engine/session_file.h"

namespace tandem {
namespace {

struct Arguments {
  std::string config;
  std::vector<std::string> overrides;
  std::string load;
  ChatOptions options{.session_file = {}, .colour = "never"};
  bool reference = false, no_history = false;
};

// Editing needs a terminal to read from and one to show the line on; with machine output on stdout, that is stderr.
std::unique_ptr<LineReader> make_reader(const Arguments& a) {
  const int output = !a.options.json && is_terminal(1) ? 1 : 2;
  if (!is_terminal(0) || !is_terminal(output)) return make_piped_reader();
  return make_terminal_reader(output, a.no_history ? "" : default_history_file());
}

int run(const Arguments& a) {
  Options options = Options::from_file(a.config);
  for (const std::string& assignment : a.overrides) options.set(assignment);
  Config config = read_config(std::move(options));
  // What cannot be written is refused before the models are loaded.
  if (!a.options.session_file.empty()) const AtomicFile probe(a.options.session_file);
  Session session(std::move(config), a.reference);
  if (!session.chat()) {
    session.config().options.refuse("prompt.chat",
                                    fmt::format("tandem chat needs true and a model with a chat template "
                                                "({})",
                                                session.target().file->name()));
  }
  warn(session.warning());
  if (!a.options.session_file.empty()) {
    const int tokens = read_session_file(a.options.session_file, session);
    if (tokens > 0 && !a.options.quiet)
      say(fmt::format("session file {}: {} tokens\n", a.options.session_file, tokens));
  }
  repeat_interrupts();
  const std::unique_ptr<LineReader> lines = make_reader(a);
  ChatLoop loop(session, *lines, a.options);
  if (!a.load.empty()) loop.load(a.load);
  if (lines->interactive() && !a.options.quiet) {
    say(fmt::format("{}, seed {}; /help lists the commands, Ctrl-D leaves\n", session.target().file->name(),
                    session.seed()));
  }
  return loop.run();
}

}  // namespace

void add_chat(CLI::App& program, Command& chosen) {
  auto a = std::make_shared<Arguments>();
  CLI::App* command = program.add_subcommand("chat", "Talk to a model; each turn reads only what is new");
  command->add_option("--config", a->config, "YAML file; see `tandem config --help` for its keys")->required();
  command->add_option("--set", a->overrides, "Override a key: --set draft.length=6 (repeatable)")
      ->allow_extra_args(false);
  command->add_option("--session", a->options.session_file,
                      "Keep the cache in this file: what the conversation begins with is not read again");
  command->add_option("--load", a->load, "Go on from a conversation that /save wrote");
  command
      ->add_flag("--color{auto}", a->options.colour,
                 "Colour the text that drafts wrote (--color=always in a pipe too); NO_COLOR turns it off")
      ->check(CLI::IsMember({"auto", "always", "never"}));
  command->add_flag("--no-history", a->no_history, "Neither read nor write the file of typed lines");
  command->add_flag("--json", a->options.json, "One JSON object a turn on stdout instead of text");
  command->add_flag("--quiet", a->options.quiet, "No figures on stderr");
  command->add_flag("--verbose", a->options.verbose, "List the ids that remain when turns are dropped");
  command->add_flag("--reference", a->reference, "F32 weights, activations and cache: slow, for checks");
  command->footer(
      "On a terminal lines are edited and remembered (in tandem/chat_history of $XDG_STATE_HOME or ~/.local/state).\n"
      "Without one each line of stdin is a turn, and stdout has the answers alone; what was refused is on stderr, and\n"
      "the exit code is 1 then. A line that ends with \\ goes on with the next; \"\"\" begins and ends a message of\n"
      "several lines. /help lists the commands. runtime.context_full says what happens when the context is full.\n"
      "Example: tandem chat --config configs/quickstart.yaml --color --set prompt.system=\"Answer in one sentence.\"");
  command->callback([a, &chosen] { chosen = [a] { return run(*a); }; });
}

}  // namespace tandem
