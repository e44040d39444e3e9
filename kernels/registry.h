// The backends of this build, by name.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/backend.h"

namespace tandem {

// The names that make_backend() takes in this build.
std::vector<std::string_view> backend_kinds();

// Why this build does not have a kind of backend, and what it has instead; empty for those that it has.
std::string why_not_built(std::string_view kind);

// `kind`: "auto", "cpu", "reference", and where they are built in "cuda" and "cuda-simt", its emulation on the host.
// "auto" is "cuda" when this machine has a device for it, else "cpu"; no other kind falls back. `pool` outlives the
// backend. Throws Error(config) for a kind that this build does not have, Error(device) for a device that is missing.
std::unique_ptr<Backend> make_backend(std::string_view kind, ThreadPool& pool);

}  // namespace tandem
