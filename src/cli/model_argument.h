// --model M: the path rule of `target.model`, relative to the working directory.
#pragma once
#include <filesystem>
#include <string>

#include "src/base/error.h"
#include "src/engine/config.h"

namespace tandem {

inline std::string model_argument(const std::string& value) {
  return find_model(value, std::filesystem::current_path().string(), ErrorKind::usage);
}

}  // namespace tandem
