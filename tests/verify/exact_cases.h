// The proposals on which a lossless rule is enumerated, and the assertion over all of them.
#pragma once
#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "src/base/error.h"
#include "tests/verify/enumeration.h"
#include "tests/verify/toy.h"

namespace tandem::testing {

inline constexpr double kExact = 1e-12;
inline constexpr double kVisible = 1e-3;

inline Shape sampled(std::initializer_list<int> widths) {
  Shape shape;
  for (const int width : widths) shape.push_back({0, width});
  return shape;
}

inline Shape deterministic(std::initializer_list<int> widths) {
  Shape shape;
  for (const int width : widths) shape.push_back({width, 0});
  return shape;
}

struct Case {
  int vocab;
  Shape shape;
};

// These shapes with vocabularies of 2, 3 and 4 tokens.
inline std::vector<Case> with_every_vocabulary(const std::vector<Shape>& shapes) {
  std::vector<Case> cases;
  for (int vocab = 2; vocab <= 4; ++vocab) {
    for (const Shape& shape : shapes) cases.push_back({vocab, shape});
  }
  return cases;
}

inline std::vector<Case> chains() {
  return with_every_vocabulary({sampled({}), sampled({1}), sampled({1, 1}), sampled({1, 1, 1}), sampled({1, 1, 1, 1})});
}

inline std::vector<Case> trees() {
  std::vector<Case> cases = with_every_vocabulary({sampled({2, 1}), sampled({2, 2}), sampled({1, 2, 1})});
  cases.push_back({3, sampled({3, 2})});
  cases.push_back({4, sampled({4})});  // more siblings than most supports
  return cases;
}

inline std::vector<Case> deterministic_trees() {
  return with_every_vocabulary({deterministic({1, 1, 1, 1}), deterministic({2, 1}), deterministic({2, 2}),
                                deterministic({1, 2, 1}), deterministic({3, 2}), deterministic({4})});
}

inline std::vector<Case> mixed_nodes() {
  return with_every_vocabulary({{Level{1, 1}},
                                {Level{1, 1}, Level{1, 1}},
                                {Level{1, 2}, Level{0, 1}},
                                {Level{2, 1}, Level{1, 0}},
                                {Level{0, 1}, Level{1, 1}, Level{0, 1}},
                                {Level{1, 0}, Level{0, 2}}});
}

inline std::vector<Case> repeating_trees() {
  return {{2, sampled({2, 1})}, {3, sampled({3})}, {3, sampled({2, 2})}, {3, {Level{1, 2}, Level{0, 1}}}};
}

inline std::string shown(const Case& one, const Pair& pair) {
  std::string text = fmt::format("{}, vocabulary {}, levels", pair.name, one.vocab);
  for (const Level& level : one.shape) text += fmt::format(" {}+{}", level.deterministic, level.sampled);
  return text;
}

// Runs every relation of p and q; returns how many outcomes were walked.
template <typename Rule>
long expect_lossless(const std::vector<Case>& cases, DraftHabits habits = {}, std::uint64_t seeds = 2) {
  long outcomes = 0;
  for (const Case& one : cases) {
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
      for (const Pair& pair : all_pairs(one.vocab, 10 * seed)) {
        const Enumeration<Rule> law(one.vocab, pair, one.shape, habits);
        EXPECT_LT(law.total_variation(), kExact) << shown(one, pair) << ", seed " << seed;
        EXPECT_NEAR(law.total_weight(), 1, kExact) << shown(one, pair) << ", seed " << seed;
        outcomes += law.outcomes();
      }
    }
  }
  return outcomes;
}

// Trees whose shape depends on what was drawn: how many siblings a node gets, and which node gets them.
template <typename Rule>
void expect_lossless_when_grown_best_first() {
  long outcomes = 0;
  for (const int vocab : {2, 3, 4}) {
    for (const int nodes : {3, 4, 5, 6, 7}) {
      const std::vector<Case> deep{{vocab, sampled({1, 1, 1})}};
      outcomes += expect_lossless<Rule>(deep, {.best_first_nodes = nodes});
    }
  }
  EXPECT_GT(outcomes, 10000);
}

// [3, 2] over 4 tokens has 24 * 12^3 trees: one seed, the two relations in which all of them are possible.
template <typename Rule>
void expect_lossless_on_the_widest_tree() {
  for (const Pair& pair : all_pairs(4, 5)) {
    if (pair.name != "independent" && pair.name != "related") continue;
    const Enumeration<Rule> law(4, pair, sampled({3, 2}));
    EXPECT_LT(law.total_variation(), kExact) << pair.name;
    EXPECT_GE(law.outcomes(), 24 * 12 * 12 * 12);
  }
}

inline Pair fixed_pair(std::vector<double> p, std::vector<double> q) {
  return {"fixed", [p](auto) { return p; }, [q](auto) { return q; }};
}

}  // namespace tandem::testing
