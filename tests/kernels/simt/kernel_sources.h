// Which kernels the sources of kernels/cuda define, and which of them this process has launched.
#pragma once
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::test {

// Names of the __global__ functions that a source text defines.
std::set<std::string> kernels_defined_in(std::string_view source);

// Of all .cu and .cuh files of kernels/cuda.
std::set<std::string> product_kernels();

// Product kernels that were not launched: whole kernels, and single instances of templates in this program.
std::vector<std::string> kernels_never_launched();

}  // namespace tandem::test
