// What follows from each other about the members of a graph.
#pragma once
#include <cstddef>
#include <numeric>
#include <vector>

namespace tandem {

// The smallest set of members 0..count-1 with holds(i, set) for each in it and for no other. `holds` may only become
// true as the set grows, and looks at none but the members that uses(i, visit) visits: it is asked again where one of
// these came in, so that long chains take no longer than short ones.
template <typename Uses, typename Holds>
std::vector<bool> least_fixpoint(int count, Uses&& uses, Holds&& holds) {
  std::vector<std::size_t> ends(static_cast<std::size_t>(count) + 1, 0);  // of the users of each member
  for (int i = 0; i < count; ++i) uses(i, [&](int used) { ++ends[static_cast<std::size_t>(used)]; });
  std::partial_sum(ends.begin(), ends.end(), ends.begin());
  std::vector<std::size_t> begins = ends;
  std::vector<int> users(ends.back());
  for (int i = 0; i < count; ++i) uses(i, [&](int used) { users[--begins[static_cast<std::size_t>(used)]] = i; });
  std::vector<bool> set(static_cast<std::size_t>(count), false);
  std::vector<int> open(static_cast<std::size_t>(count));
  std::iota(open.rbegin(), open.rend(), 0);
  while (!open.empty()) {
    const int i = open.back();
    const auto place = static_cast<std::size_t>(i);
    open.pop_back();
    if (set[place] || !holds(i, set)) continue;
    set[place] = true;
    open.insert(open.end(), users.begin() + static_cast<std::ptrdiff_t>(begins[place]),
                users.begin() + static_cast<std::ptrdiff_t>(ends[place]));
  }
  return set;
}

}  // namespace tandem
