// The one exception of the library. Libraries never print, abort or exit; the command line prints it once.
#pragma once
#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace tandem {

enum class ErrorKind {
  usage,    // a command-line mistake: exit code 2
  config,   // a configuration key or value: exit code 2
  file,     // a file that is missing, cut, foreign or malformed
  model,    // a well-formed model that cannot be run or paired
  input,    // a prompt or other run-time input beyond a limit
  numeric,  // NaN or infinite rows where a number is needed
  device    // a GPU that is missing, out of memory, or refuses a call
};

// Message style: place, what, expected, got: `model.gguf: tensor blk.3.attn_k.weight: expected [1536, 256], got [1536,
// 255]`.
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  ErrorKind kind() const { return kind_; }

 private:
  ErrorKind kind_;
};

// Throws an Error with a formatted message.
template <typename... Args>
[[noreturn]] void fail(ErrorKind kind, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(kind, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace tandem
