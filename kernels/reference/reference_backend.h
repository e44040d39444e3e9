// The reference that every other backend is tested against: F32 values, double accumulation, the simplest code here.
#pragma once
#include <memory>

#include "kernels/backend.h"

namespace tandem {

std::unique_ptr<Backend> make_reference_backend(ThreadPool& pool);

}  // namespace tandem
