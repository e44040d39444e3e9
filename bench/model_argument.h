// --model PATH of a benchmark program, beside Google Benchmark's own arguments.
#pragma once
#include <benchmark/benchmark.h>

#include <filesystem>
#include <string>
#include <string_view>

#include "src/base/error.h"
#include "src/engine/config.h"

namespace tandem {

// Takes `--model=NAME` out of the arguments and Google Benchmark's after it. NAME is a path or the bare name of a file
// in the model folder. Throws Error(usage) when it is missing, and for arguments that nobody knows.
inline std::string take_model_argument(int& argc, char** argv) {
  constexpr std::string_view kFlag = "--model=";
  std::string name;
  int kept = 1;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument.starts_with(kFlag)) {
      name = argument.substr(kFlag.size());
    } else {
      argv[kept++] = argv[i];
    }
  }
  argc = kept;
  benchmark::Initialize(&argc, argv);
  if (argc > 1) fail(ErrorKind::usage, "{}: expected --model=FILE and options of Google Benchmark", argv[1]);
  if (name.empty()) fail(ErrorKind::usage, "--model=FILE: expected a GGUF file, or its name in the model folder");
  return find_model(name, std::filesystem::current_path().string(), ErrorKind::usage);
}

}  // namespace tandem
