// tandem config: the effective settings, and the reference of every key.
#include <fmt/format.h>

#include <memory>

#include "src/base/error.h"
#include "src/cli/commands.h"
#include "src/cli/terminal.h"
#include "src/engine/config.h"

namespace tandem {
namespace {

struct Arguments {
  std::string config;
  std::vector<std::string> overrides;
};

std::string key_reference() {
  std::string text = "Keys of a config file (a YAML map; sections nest, `draft.length` is `length` under `draft`):\n";
  for (const OptionDoc& doc : config_documentation()) {
    text += fmt::format("  {:<30}{} (default: {})\n{:34}{}\n", doc.key, doc.type, doc.fallback, "", doc.help);
  }
  return text + "\nExample: tandem config --config configs/quickstart.yaml --set draft.length=6";
}

int run(const Arguments& a) {
  if (a.config.empty())
    fail(ErrorKind::usage, "config: expected --config FILE; `tandem config --help` lists every key");
  Options options = Options::from_file(a.config);
  for (const std::string& assignment : a.overrides) options.set(assignment);
  return write_stdout(to_yaml(read_config(std::move(options)))) ? 0 : 1;
}

}  // namespace

void add_config(CLI::App& program, Command& chosen) {
  auto a = std::make_shared<Arguments>();
  CLI::App* command =
      program.add_subcommand("config", "Effective settings of a config file; --help documents every key");
  command->add_option("--config", a->config, "YAML file");
  command->add_option("--set", a->overrides, "Override a key: --set draft.length=6 (repeatable)")
      ->allow_extra_args(false);
  command->footer(key_reference());
  command->callback([a, &chosen] { chosen = [a] { return run(*a); }; });
}

}  // namespace tandem
