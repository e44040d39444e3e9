// Tables of rotary positions (Su et al. 2021), and the frequencies of texts longer than a model was trained on.
#pragma once
#include <span>
#include <vector>

namespace tandem {

// Fills `table` with cos and then sin of position times frequency, each [positions, dims / 2] and times `magnitude`.
// Pair i turns by base^(-2 i / dims) / divisors[i] a position; no divisors = all 1. Computed in double.
void fill_rope_table(std::span<float> table, int positions, int dims, double base, std::span<const double> divisors,
                     double magnitude);

// YaRN (Peng et al. 2023, arXiv 2309.00071), from pairs left alone to pairs slowed down by `factor`.
struct Yarn {
  double factor = 1;         // at least 1 is usual
  int original_context = 0;  // positions of the training, which `beta` counts turns over
  double beta_fast = 32;     // pairs with more turns stay as they are,
  double beta_slow = 1;      // with fewer are slowed down wholly, in between partly
};

// Divisors of the frequencies of all dims / 2 pairs. `base` is above 1.
std::vector<double> yarn_divisors(const Yarn& yarn, double base, int dims);

// By how much YaRN lengthens queries and keys: 1 + 0.1 multiplier log(factor), 1 for factors up to 1.
double yarn_magnitude(double factor, double multiplier);

}  // namespace tandem
