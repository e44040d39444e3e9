// Which kernels have run in this process, and what they are called.
#pragma once
#include <set>
#include <string>

namespace tandem::simt {

// Thread-safe.
void record_launch(const void* kernel);
std::set<const void*> launched_kernels();

// The demangled name, template arguments included, of a function of this program, found in its symbol table; its
// address where the program is stripped.
std::string function_name(const void* function);
// `tandem::cuda_simt::scale_kernel<256>` of `void tandem::cuda_simt::scale_kernel<256>(float*, int)`.
std::string without_signature(const std::string& demangled);

}  // namespace tandem::simt
