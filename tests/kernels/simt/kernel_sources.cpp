#include "tests/kernels/simt/kernel_sources.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>

#include "kernels/simt/launches.h"
#include "kernels/simt/symbols.h"

namespace tandem::test {
namespace {

constexpr std::string_view kProduct = "tandem::cuda_simt::";

// `scale_kernel` of `tandem::cuda_simt::(anonymous namespace)::scale_kernel<256>`; empty for what is not the product's.
std::string base_name(const std::string& name) {
  if (!name.starts_with(kProduct)) return {};
  std::string rest = name.substr(kProduct.size());
  constexpr std::string_view kAnonymous = "(anonymous namespace)::";
  if (rest.starts_with(kAnonymous)) rest = rest.substr(kAnonymous.size());
  return rest.substr(0, rest.find('<'));
}

}  // namespace

std::set<std::string> kernels_defined_in(std::string_view source) {
  static const std::regex kComment(R"(//[^\n]*|/\*[\s\S]*?\*/)");
  static const std::regex kKernel(
      R"(__global__\s+(?:[\w:<>,\s\(\)]*?\s)?void\s+(?:__launch_bounds__\s*\([^)]*\)\s*)?(\w+)\s*\()");
  const std::string text = std::regex_replace(std::string(source), kComment, " ");
  std::set<std::string> names;
  for (std::sregex_iterator match(text.begin(), text.end(), kKernel), end; match != end; ++match) {
    names.insert((*match)[1]);
  }
  return names;
}

std::set<std::string> product_kernels() {
  std::set<std::string> names;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(TANDEM_SOURCE_DIR) / "kernels/cuda")) {
    if (entry.path().extension() != ".cu" && entry.path().extension() != ".cuh") continue;
    std::ifstream file(entry.path());
    names.merge(kernels_defined_in(std::string(std::istreambuf_iterator<char>(file), {})));
  }
  return names;
}

std::vector<std::string> kernels_never_launched() {
  const auto launched = simt::launched_kernels();
  std::set<std::string> launched_names;
  for (const void* kernel : launched) launched_names.insert(base_name(simt::function_name(kernel)));
  const std::set<std::string> defined = product_kernels();
  std::vector<std::string> missing;
  for (const std::string& name : defined) {
    if (!launched_names.contains(name)) missing.push_back(name);
  }
  for (const auto& [address, mangled] : simt::symbols_of_program()) {
    if (mangled.find('.') != std::string::npos) continue;  // a part or a copy that the compiler split off
    const std::string whole = simt::demangled(mangled), name = simt::without_signature(whole);
    if (whole.find("{lambda") != std::string::npos) continue;  // within a kernel
    if (defined.contains(base_name(name)) && !launched.contains(address)) missing.push_back(name);
  }
  return missing;
}

}  // namespace tandem::test
