// Layers with a sliding window keep a ring of places: exact after every rollback, and never seen beyond the window.
#include <gtest/gtest.h>

#include "src/base/error.h"
#include "tests/model/tiny_model.h"

namespace tandem::test {
namespace {

struct Case {
  std::string name, architecture, backend;
  KvType kv;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

constexpr int kContext = 170, kWindow = 16, kRing = kWindow + kMaxTreeNodes;

class SlidingWindow : public testing::TestWithParam<Case> {
 protected:
  static TinyOptions options() {
    TinyOptions o;
    o.architecture = GetParam().architecture;
    o.window = kWindow;
    o.format = Format::q8_0;
    if (GetParam().kv == KvType::q8_0) o.head_dim = kKvBlock;
    return o;
  }
  // Layer 0 slides, layer 1 does not.
  KvCache rings() const { return tiny_.model.make_cache(kContext, GetParam().kv); }
  // One pass may have as many rows as there are places: no layer can do with fewer slots.
  KvCache all_places() const { return {tiny_.model.spec(), kContext, GetParam().kv, *tiny_.backend, kContext}; }

  // NaN in every slot but those of the places that a later token sees.
  void poison(const KvCache& cache) const {
    for (int i = 0; i < tiny_.model.spec().layers; ++i) {
      const KvLayer& layer = cache.layer(i);
      const int window = tiny_.model.spec().window_of(i);
      const int first = window > 0 ? std::max(0, cache.size() + 1 - window) : 0;
      std::vector<bool> kept(static_cast<std::size_t>(layer.capacity));
      for (int place = first; place < cache.size(); ++place) kept[place % layer.capacity] = true;
      for (std::byte* part : {layer.keys, layer.values}) {
        for (int head = 0; head < layer.kv_heads; ++head) {
          for (int slot = 0; slot < layer.capacity; ++slot) {  // all bits set are NaN in f32, f16 and a scale of q8_0
            if (!kept[slot]) std::fill_n(part + layer.offset(head, slot), layer.slot_bytes(), std::byte{0xff});
          }
        }
      }
    }
  }

  void expect_as_prefilled(KvCache& cache, std::span<const TokenId> committed) {
    const std::span<const TokenId> held = committed.first(committed.size() - 1);
    KvCache fresh = all_places();
    feed(tiny_.model, fresh, held, 50);
    ASSERT_EQ(cache.size(), static_cast<int>(held.size()));
    for (int layer = 0; layer < tiny_.model.spec().layers; ++layer) {
      ASSERT_EQ(cache.snapshot(layer), fresh.snapshot(layer)) << "layer " << layer << ", " << held.size() << " tokens";
    }
    ASSERT_EQ(feed(tiny_.model, cache, committed.last(1)), feed(tiny_.model, fresh, committed.last(1)));
    cache.keep_path(static_cast<int>(held.size()), {});
  }

  TinyModel tiny_{options(), GetParam().backend, 1, kMaxTreeNodes};
  std::mt19937_64 random_{31};
};
INSTANTIATE_TEST_SUITE_P(Models, SlidingWindow,
                         testing::Values(Case{"Gemma2Reference", "gemma2", "reference", KvType::f32},
                                         Case{"Gemma3Reference", "gemma3", "reference", KvType::f16},
                                         Case{"Gemma2Cpu", "gemma2", "cpu", KvType::f16},
                                         Case{"Gemma3Cpu", "gemma3", "cpu", KvType::f16},
                                         Case{"Gemma3CpuF32", "gemma3", "cpu", KvType::f32},
                                         Case{"Gemma3CpuQ8_0", "gemma3", "cpu", KvType::q8_0}),
                         [](const auto& info) { return info.param.name; });

// Random trees, random accepted paths and cuts over two rounds of the ring; everything rejected is NaN at once.
TEST_P(SlidingWindow, CacheEqualsAPrefillOfAllPlacesThoughRejectedRowsArePoisoned) {
  std::vector<TokenId> committed = random_tokens(random_, 3);
  KvCache cache = rings();
  ASSERT_TRUE(cache.layer(0).ring);
  ASSERT_EQ(cache.layer(0).capacity, kRing);
  ASSERT_FALSE(cache.layer(1).ring);
  feed(tiny_.model, cache, std::span(committed).first(committed.size() - 1));
  for (int step = 0;; ++step) {
    const int room = std::min(kContext - cache.size(), kMaxTreeNodes);
    const int nodes = 1 + static_cast<int>(random_() % std::min(room, step % 3 == 2 ? room : 12));
    const TokenTree tree = random_tree(random_, committed.back(), nodes);
    const int base = cache.size();
    poison(cache);
    feed(tiny_.model, cache, tree);
    int last = static_cast<int>(random_() % tree.size());
    if (step % 2 == 0) {
      for (int i = 0; i < tree.size(); ++i) last = tree.depth(i) > tree.depth(last) ? i : last;
    }
    const std::vector<int> path = path_to(tree, last);
    cache.keep_path(base, path);
    const std::vector<TokenId> accepted = tokens_of(tree, path);
    committed.insert(committed.end(), accepted.begin() + 1, accepted.end());
    committed.push_back(static_cast<TokenId>(random_() % 105));
    if (step % 5 == 4) {
      committed.resize(committed.size() - random_() % std::min<std::size_t>(path.size(), 5));
      ASSERT_EQ(cache.truncate(static_cast<int>(committed.size()) - 1), static_cast<int>(committed.size()) - 1);
    }
    if (cache.size() + 1 >= kContext) break;
    poison(cache);
    ASSERT_NO_FATAL_FAILURE(expect_as_prefilled(cache, committed)) << "step " << step;
  }
}

TEST_P(SlidingWindow, RowsOverTheSeamEqualTheirPathsRunAlone) {
  const std::vector<TokenId> prompt = random_tokens(random_, kContext - kMaxTreeNodes);
  for (const int before : {kWindow - 3, kRing - 40, kRing - 1, kRing, static_cast<int>(prompt.size())}) {
    KvCache tree_cache = rings(), path_cache = rings();
    feed(tiny_.model, tree_cache, std::span(prompt).first(before));
    feed(tiny_.model, path_cache, std::span(prompt).first(before), 7);
    const TokenTree tree = random_tree(random_, 5, kMaxTreeNodes);
    const Logits logits = feed(tiny_.model, tree_cache, tree);
    std::vector<std::vector<float>> rows;
    for (int node = 0; node < tree.size(); ++node) {
      rows.emplace_back(logits.row(node).begin(), logits.row(node).end());
    }
    for (int leaf = 0; leaf < tree.size(); ++leaf) {
      if (tree.next_child(leaf, leaf) >= 0) continue;
      for (const int node : path_to(tree, leaf)) {
        const std::vector<TokenId> token{tree.token(node)};
        ASSERT_EQ(feed(tiny_.model, path_cache, token), rows[node]) << "node " << node << " behind " << before;
      }
      ASSERT_EQ(path_cache.truncate(before), before);
    }
  }
}

// As far back as the ring holds the window, else to nothing; what goes on from there is true either way.
TEST_P(SlidingWindow, TruncationIsExactOrForgetsAll) {
  const std::vector<TokenId> text = random_tokens(random_, 150);
  KvCache all = all_places();
  const std::vector<float> truth = feed(tiny_.model, all, text, 50);
  const int reach = 150 - kRing + kWindow - 1;
  for (const int wanted : {149, 120, reach + 1, reach, reach - 1, kRing, kWindow, 1, 0}) {
    KvCache cache = rings();
    feed(tiny_.model, cache, text, 50);
    const int kept = cache.truncate(wanted);
    EXPECT_EQ(kept, wanted >= reach ? wanted : 0);
    EXPECT_EQ(cache.size(), kept);
    poison(cache);
    EXPECT_EQ(feed(tiny_.model, cache, std::span(text).subspan(kept), 50), truth) << "from " << wanted;
  }
}

TEST_P(SlidingWindow, RowsThatWereRolledBackCountAsStored) {
  const std::vector<TokenId> text = random_tokens(random_, 100);
  const TokenTree tree = random_tree(random_, 5, kMaxTreeNodes);
  for (const int wanted : {99, 98}) {
    KvCache cache = rings();
    feed(tiny_.model, cache, text, 50);
    feed(tiny_.model, cache, tree);
    cache.keep_path(100, {});
    EXPECT_EQ(cache.truncate(wanted), wanted == 99 ? 99 : 0);
    cache.clear();
    feed(tiny_.model, cache, std::span(text).first(60));
    EXPECT_EQ(cache.truncate(1), 1);  // nothing was overwritten since
  }
}

TEST_P(SlidingWindow, MemoryOfALayerThatSlidesStopsToGrow) {
  const ModelSpec& spec = tiny_.model.spec();
  const auto slot_bytes = [&](int capacity) {
    return tiny_.model.make_cache(capacity, GetParam().kv).bytes() / (2 * spec.kv_heads) /
           slot_bytes_of(GetParam().kv, spec.head_dim);
  };
  EXPECT_EQ(slot_bytes(60), 2u * 60);
  EXPECT_EQ(slot_bytes(kRing), 2u * kRing);
  EXPECT_EQ(slot_bytes(kRing + 1), 2u * kRing + 1);
  EXPECT_EQ(slot_bytes(512), 512u + kRing);
}

TEST_P(SlidingWindow, APassOfMoreRowsThanTheRingIsMadeForIsRefused) {
  KvCache cache{tiny_.model.spec(), kContext, GetParam().kv, *tiny_.backend, 8};
  EXPECT_NO_THROW(feed(tiny_.model, cache, random_tokens(random_, 8)));
  EXPECT_THROW(feed(tiny_.model, cache, random_tokens(random_, 9)), Error);
  EXPECT_EQ(cache.size(), 8);
}

}  // namespace
}  // namespace tandem::test
