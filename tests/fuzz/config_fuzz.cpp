// libFuzzer target of the configuration: a YAML text, then after each zero byte one `--set` assignment. Whatever it is,
// it is either read, and then its effective settings read back unchanged, or refused with Error(config).
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "src/engine/config.h"

namespace {

// Reads settings with a target that always exists; nothing else in this build needs the file.
tandem::Config read(std::string_view text, std::string_view sets) {
  tandem::Options options = tandem::Options::from_text(text, "fuzz.yaml");
  while (!sets.empty()) {
    const std::size_t end = sets.find('\0');
    options.set(sets.substr(0, end));
    sets = end == std::string_view::npos ? "" : sets.substr(end + 1);
  }
  options.set("target.model=/dev/null");
  return tandem::read_config(std::move(options));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t end = input.find('\0');
  std::string yaml;
  try {
    yaml = to_yaml(read(input.substr(0, end), end == std::string_view::npos ? "" : input.substr(end + 1)));
  } catch (const tandem::Error& error) {
    if (error.kind() != tandem::ErrorKind::config) std::abort();
    return 0;
  }
  if (to_yaml(read(yaml, "")) != yaml) std::abort();
  return 0;
}
