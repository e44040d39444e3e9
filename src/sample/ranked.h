// The few best of many, kept in order as they are offered.
#pragma once
#include <cstddef>
#include <span>

#include "src/base/types.h"

namespace tandem {

struct RankedToken {
  TokenId token = 0;
  double value = 0;
};

// Puts `item` behind all of the first `count` of `list` that are no worse, where better(a, b) says that a beats b; the
// weakest of a full list falls out. A full list takes only items that beat its last.
template <typename Item, typename Better>
void insert_ranked(std::span<Item> list, int& count, const Item& item, Better&& better) {
  const int most = static_cast<int>(list.size());
  int place = count < most ? count++ : most - 1;
  const auto at = [&](int i) -> Item& { return list[static_cast<std::size_t>(i)]; };
  for (; place > 0 && better(item, at(place - 1)); --place) at(place) = at(place - 1);
  at(place) = item;
}

}  // namespace tandem
