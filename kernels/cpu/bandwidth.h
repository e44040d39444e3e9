// What memory gives: the yardstick for every pass over the weights.
#pragma once
#include "src/base/thread_pool.h"

namespace tandem {

// Bytes a second of plain reading of 1 GB in huge pages with all threads of the pool: median of `repeats` passes.
double measure_read_bandwidth(ThreadPool& pool, int repeats = 7);

}  // namespace tandem
