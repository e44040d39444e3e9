// The subcommands. Each adds itself to the program and, once parsed, runs and returns the exit code.
#pragma once
#include <CLI/CLI.hpp>
#include <functional>

namespace tandem {

using Command = std::function<int()>;

// Registers a subcommand; when it is the one called, `chosen` becomes what runs it.
void add_generate(CLI::App& program, Command& chosen);
void add_chat(CLI::App& program, Command& chosen);
void add_accept(CLI::App& program, Command& chosen);
void add_check(CLI::App& program, Command& chosen);
void add_replay(CLI::App& program, Command& chosen);
void add_score(CLI::App& program, Command& chosen);
void add_tokenize(CLI::App& program, Command& chosen);
void add_inspect(CLI::App& program, Command& chosen);
void add_rows(CLI::App& program, Command& chosen);
void add_sweep(CLI::App& program, Command& chosen);
void add_trace(CLI::App& program, Command& chosen);
void add_config(CLI::App& program, Command& chosen);

}  // namespace tandem
