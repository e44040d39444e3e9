// exp over many values at once: what a row of a whole vocabulary costs is mostly this.
#pragma once
#include <span>

namespace tandem {

// Replaces each value, at most 0 and no NaN, by its exponential: within 1 ulp, exactly 1 for 0, and 0 where the result
// would be below the normal doubles (some -708). Each result depends on its value alone and is the same on every
// machine: vector code that a processor may have changes no bit.
void exponentials(std::span<double> values);

}  // namespace tandem
