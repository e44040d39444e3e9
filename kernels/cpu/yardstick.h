// What the machine gives at best: the yardsticks for every pass over the weights.
#pragma once
#include "src/base/thread_pool.h"

namespace tandem {

// Bytes a second of plain reading of 1 GB in huge pages with all threads of the pool: median of `repeats` passes.
double measure_read_bandwidth(ThreadPool& pool, int repeats = 7);

// Multiply-adds of 8-bit integers a second, all threads of the pool on data in L1: median of `repeats` runs of a
// few milliseconds, with the instruction set that the CPU backend uses (TANDEM_ISA counts).
double measure_multiply_peak(ThreadPool& pool, int repeats = 7);

}  // namespace tandem
