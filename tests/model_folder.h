// Where tests find the real model files, and whether only the smallest is used in this run.
#pragma once
#include <cstdlib>
#include <string>
#include <string_view>

namespace tandem {

// Path of a model file by its bare name: inside $TANDEM_MODELS, else ~/.cache/tandem/models. The file may be missing.
inline std::string model_path(std::string_view file) {
  const char* folder = std::getenv("TANDEM_MODELS");
  if (folder != nullptr && *folder != '\0') return std::string(folder) + "/" + std::string(file);
  const char* home = std::getenv("HOME");
  return std::string(home != nullptr ? home : ".") + "/.cache/tandem/models/" + std::string(file);
}

// True when TANDEM_TEST_MODELS=small: tests of the Qwen pair and of Gemma then skip with a sentence instead of failing.
inline bool small_models_only() {
  const char* models = std::getenv("TANDEM_TEST_MODELS");
  return models != nullptr && std::string_view(models) == "small";
}

}  // namespace tandem
