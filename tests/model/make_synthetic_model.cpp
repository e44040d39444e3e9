// make_synthetic_model SHAPE FILE: see synthetic_model.h.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <exception>

#include "tests/model/synthetic_model.h"

int main(int argc, char** argv) {
  std::string shape, path;
  std::uint64_t seed = 1;
  CLI::App program(
      "Writes a model file of seeded weights whose text is set beforehand: token t is followed by t + 7919");
  program.add_option("shape", shape, "tiny, 0.5b or 1.5b: as Qwen2.5-Coder of that size in Q4_K_M")->required();
  program.add_option("file", path, "GGUF file to write")->required();
  program.add_option("--seed", seed, "Models of other seeds have other weights")->capture_default_str();
  program.footer("Example: make_synthetic_model 1.5b /tmp/synthetic-1.5b.gguf");
  CLI11_PARSE(program, argc, argv);
  try {
    tandem::test::write_synthetic_model(tandem::test::synthetic_shape(shape), seed, path);
  } catch (const std::exception& error) {
    fmt::print(stderr, "make_synthetic_model: {}\n", error.what());
    return 1;
  }
}
