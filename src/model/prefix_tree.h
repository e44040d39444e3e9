// Sequences as numbers, for what stands in for a model: caches that hold prefixes in place of keys.
#pragma once
#include <array>
#include <bit>
#include <cassert>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "src/model/language_model.h"

namespace tandem {

using Prefix = std::int32_t;  // a sequence of tokens by its number in a PrefixTree; 0 is the empty one

// All prefixes that ever came, each with its parent. The caches hold, where a true one holds the key of a token, the
// prefix that ends there: truncate and keep_path move prefixes as they would move keys, so a sequence kept wrongly is
// a wrong prefix here.
class PrefixTree {
 public:
  // `context`: tokens of the longest cache.
  explicit PrefixTree(int context);
  ~PrefixTree();

  // The sequence `parent` and then `token`; a new one gets the number size().
  Prefix extend(Prefix parent, TokenId token);
  int size() const { return static_cast<int>(nodes_.size()); }  // numbers given so far
  Prefix parent(Prefix prefix) const { return nodes_[static_cast<std::size_t>(prefix)].parent; }
  TokenId token(Prefix prefix) const { return nodes_[static_cast<std::size_t>(prefix)].token; }

  KvCache make_cache(int capacity) const;
  // Runs a batch as LanguageModel::forward does: the cache, one of make_cache(), grows by all rows, and
  // `answer(prefix)` is called for each row whose logits are wanted, in their order. What goes into an empty cache
  // follows `root`.
  template <typename Answer>
  void run(const Batch& batch, KvCache& cache, Answer&& answer, Prefix root = 0);

 private:
  struct Node {
    Prefix parent;
    TokenId token;
  };
  struct Slots;  // backend and shape of the caches

  static Prefix held(const KvCache& cache, int slot);
  static void hold(const KvCache& cache, int slot, Prefix prefix);

  std::vector<Node> nodes_{{0, 0}};
  std::unordered_map<std::uint64_t, Prefix> children_;  // by parent << 32 | token
  std::unique_ptr<Slots> slots_;
};

template <typename Answer>
void PrefixTree::run(const Batch& batch, KvCache& cache, Answer&& answer, Prefix root) {
  const int base = cache.size(), rows = static_cast<int>(batch.tokens.size());
  assert(base + rows <= cache.capacity());
  Prefix before = base > 0 ? held(cache, base - 1) : root;
  std::array<Prefix, kMaxTreeNodes> tree{};
  std::size_t answered = 0;
  for (int row = 0; row < rows; ++row) {
    Prefix parent = before;
    if (!batch.ancestors.empty()) {
      const std::uint64_t above = batch.ancestors[row] & ~(std::uint64_t{1} << row);
      parent = above == 0 ? before : tree[std::bit_width(above) - 1];
    }
    const Prefix prefix = extend(parent, batch.tokens[row]);
    hold(cache, base + row, prefix);
    (batch.ancestors.empty() ? before : tree[row]) = prefix;
    if (answered == batch.logits_rows.size() || batch.logits_rows[answered] != row) continue;
    answer(prefix);
    ++answered;
  }
  cache.advance(rows);
}

}  // namespace tandem
