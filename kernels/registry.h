// The backends of this build, by name.
#pragma once
#include <memory>
#include <string_view>

#include "kernels/backend.h"

namespace tandem {

// `kind`: "auto", "cpu", "cuda" or "reference". "auto" is the CPU unless a usable GPU backend is built in. `pool`
// outlives it. Throws Error(config) for a backend that this build or machine does not have, saying why.
std::unique_ptr<Backend> make_backend(std::string_view kind, ThreadPool& pool);

}  // namespace tandem
