// Counts every allocation of a test program that links allocation_counter.cpp.
#pragma once

namespace tandem::testing {

long allocations();  // since the program started

}  // namespace tandem::testing
