// The check that every sampling option goes through.
#pragma once
#include "src/base/error.h"

namespace tandem {

// Throws Error(config) naming the option, what it may be and what it was.
inline void require_option(bool holds, const char* option, const char* expected, double got) {
  if (!holds) fail(ErrorKind::config, "sampling.{}: expected {}, got {}", option, expected, got);
}

}  // namespace tandem
