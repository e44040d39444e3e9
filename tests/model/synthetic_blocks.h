// Blocks of quantised values for synthetic models: random ones of a given deviation, and ones that hold signs only.
#pragma once
#include <cstdint>
#include <random>
#include <span>

#include "kernels/quant/format.h"

namespace tandem::test {

// Fills whole blocks with random codes whose decoded values have mean near 0 and about this standard deviation.
// `format`: q4_k, q5_0, q6_k or q8_0; throws Error(usage) for others.
void fill_random_blocks(Format format, std::span<std::uint8_t> blocks, double deviation, std::mt19937_64& random);

// Fills whole blocks with values of this magnitude, value i negative where bit i mod 64 of signs[i / 64] is 0. Formats
// as above.
void fill_sign_blocks(Format format, std::span<std::uint8_t> blocks, double magnitude,
                      std::span<const std::uint64_t> signs);

}  // namespace tandem::test
