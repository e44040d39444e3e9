// Tiny model files for tests of whole sessions, and a user cache that is forgotten with them.
#pragma once
#include <cstdlib>
#include <string>

#include "tests/base/temp_dir.h"
#include "tests/model/tiny_model.h"

namespace tandem::test {

// A part of a test's fixture: hashes, cost tables and indexes go into the test's own folder.
class SessionModels {
 protected:
  SessionModels() { ::setenv("XDG_CACHE_HOME", folder_.path().c_str(), 1); }
  ~SessionModels() { ::unsetenv("XDG_CACHE_HOME"); }

  static TinyOptions small_options() {
    TinyOptions options;
    options.format = Format::q8_0;
    options.tied = false;
    options.width = options.ffn = 32;
    options.heads = 2;
    options.kv_heads = 1;
    return options;
  }

  // A target, and a draft that often agrees with it.
  void write_pair(TinyOptions options = small_options()) {
    target_ = write_tiny_model(folder_, "target.gguf", options);
    options.noise = 0.3;
    draft_ = write_tiny_model(folder_, "draft.gguf", options);
  }

  TempDir folder_;
  std::string target_, draft_;
};

}  // namespace tandem::test
