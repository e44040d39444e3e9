// Entry point: picks a subcommand, prints errors once, turns them into exit codes (2 for usage and config, 1 for the
// rest).
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <exception>

#include "src/base/error.h"
#include "src/base/option_text.h"
#include "src/cli/commands.h"
#include "src/cli/terminal.h"

namespace {

int exit_code(tandem::ErrorKind kind) {
  return kind == tandem::ErrorKind::usage || kind == tandem::ErrorKind::config ? 2 : 1;
}

// A standard stream that the caller closed must not become the descriptor of a file we open.
void hold_standard_streams() {
  int descriptor = 0;
  while (descriptor >= 0 && descriptor <= STDERR_FILENO) descriptor = ::open("/dev/null", O_RDWR);
  if (descriptor > STDERR_FILENO) ::close(descriptor);
}

// What was wrong with the command line, and where to read on.
std::string usage_sentence(const CLI::App& program, const CLI::ParseError& error, const std::string& first) {
  const std::vector<CLI::App*> called = program.get_subcommands();
  if (called.empty() && !first.starts_with("-")) {
    std::vector<std::string> names;
    for (const CLI::App* command : program.get_subcommands({})) names.push_back(command->get_name());
    const auto near = tandem::nearest_name(first, names);
    return fmt::format("tandem: expected the command {}, got {}{}\n", tandem::joined_choices(names), first,
                       near ? fmt::format(" (did you mean {}?)", *near) : "");
  }
  return fmt::format("tandem: {}; see tandem{} --help\n", error.what(),
                     called.empty() ? "" : " " + called.front()->get_name());
}

int run(int argc, char** argv) {
  CLI::App program("tandem: faster text from a language model, without changing it (speculative decoding).", "tandem");
  program.set_version_flag("--version", "tandem " TANDEM_VERSION);
  program.require_subcommand(1);
  program.footer("Example: tandem generate --config configs/quickstart.yaml --prompt \"Write a haiku about rivers.\"");
  tandem::Command chosen;
  tandem::add_generate(program, chosen);
  tandem::add_chat(program, chosen);
  tandem::add_accept(program, chosen);
  tandem::add_check(program, chosen);
  tandem::add_replay(program, chosen);
  tandem::add_score(program, chosen);
  tandem::add_tokenize(program, chosen);
  tandem::add_inspect(program, chosen);
  tandem::add_rows(program, chosen);
  tandem::add_sweep(program, chosen);
  tandem::add_trace(program, chosen);
  tandem::add_config(program, chosen);
  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return program.exit(error);  // --help and --version
    tandem::say(argc > 1 ? usage_sentence(program, error, argv[1]) : program.help());
    return 2;
  }
  return chosen();
}

}  // namespace

int main(int argc, char** argv) {
  hold_standard_streams();
  std::signal(SIGPIPE, SIG_IGN);  // a reader that leaves is a failed write, handled where text is written
  try {
    return run(argc, argv);
  } catch (const tandem::Error& error) {
    tandem::say(fmt::format("tandem: {}\n", error.what()));
    return exit_code(error.kind());
  } catch (const std::bad_alloc&) {
    tandem::say("tandem: out of memory; a smaller target.context or model needs less\n");
    return 1;
  } catch (const std::exception& error) {
    tandem::say(fmt::format("tandem: {}\n", error.what()));
    return 1;
  }
}
