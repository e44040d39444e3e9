// The CPU backend: weights in tiles, int8 activations, one thread pool.
#pragma once
#include <memory>

#include "kernels/backend.h"
#include "kernels/cpu/isa.h"

namespace tandem {

// A CPU backend for one instruction set, which the machine must have. `pool` outlives it.
std::unique_ptr<Backend> make_cpu_backend(Isa isa, ThreadPool& pool);

}  // namespace tandem
