// What a command says to its terminal: text, progress and the user's Ctrl-C.
#pragma once
#include <atomic>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace tandem {

// Set by the first Ctrl-C; a second one ends the process at once. Installs the handler on first use.
const std::atomic<bool>& interrupted();

// As if the user had pressed Ctrl-C, e.g. when the reader of stdout has gone.
void request_stop();

// From now on Ctrl-C, as often as it comes, only sets interrupted(), until take_interrupt() clears it. SIGTERM and
// SIGHUP set it too, once; then terminated() stays true.
void repeat_interrupts();
bool take_interrupt();  // whether one came since the last call
bool terminated();

bool is_terminal(int descriptor);  // 0 stdin, 1 stdout, 2 stderr

// Writes bytes to stdout at once. False when the reader has gone; throws Error(file) for any other failure, e.g. a full
// disk.
bool write_stdout(std::string_view bytes);

// One document and a newline to stdout: indented, or on one line. Bytes that are not UTF-8 (in a path, say) become
// U+FFFD. As write_stdout.
bool write_json(const nlohmann::ordered_json& json, bool indented = true);
std::string json_text(const nlohmann::ordered_json& json, bool indented = true);

// Writes to stderr; nobody is told when that fails.
void say(std::string_view text);
void warn(std::string_view sentence);  // nothing for an empty one

// All bytes of a stream, or of a file ("-" is stdin). Throws Error(usage) naming the path.
std::string read_all_stdin();
std::string read_file(const std::string& path);

// A bar on stderr, shown once the work has taken over a second and only on a terminal; wiped when done.
class ProgressBar {
 public:
  explicit ProgressBar(std::string_view label);
  ~ProgressBar();
  void show(std::size_t done, std::size_t total);
  void wipe();  // before text goes to the same terminal; the next show() brings it back

 private:
  std::string label_;
  double start_seconds_;
  bool shown_ = false;
};

}  // namespace tandem
