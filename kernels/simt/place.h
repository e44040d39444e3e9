// Where in a kernel's source something waits: std::source_location for compilers that do not have it yet (clang 14).
#pragma once
#include <cstring>

namespace tandem::simt {

struct Place {
  const char* file = "";
  int line = 0;

  // As a default argument, that of the call.
  static constexpr Place of_call(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return {file, line};
  }
};

inline bool operator==(const Place& a, const Place& b) { return a.line == b.line && std::strcmp(a.file, b.file) == 0; }

}  // namespace tandem::simt
