// The cache after any rollback holds the bits that a fresh prefill of the committed tokens would.
#include <gtest/gtest.h>

#include "src/base/error.h"
#include "tests/model/tiny_model.h"

namespace tandem::test {
namespace {

struct Case {
  std::string name, backend;
  KvType kv;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class Rollback : public testing::TestWithParam<Case> {
 protected:
  // Bit equality with a prefill of the committed tokens but the pending one, and the same next logits.
  void expect_as_prefilled(KvCache& cache, std::span<const TokenId> committed) {
    const std::span<const TokenId> held = committed.first(committed.size() - 1);
    KvCache fresh = tiny_.model.make_cache(kContext, GetParam().kv);
    feed(tiny_.model, fresh, held, 50);
    ASSERT_EQ(cache.size(), static_cast<int>(held.size()));
    for (int layer = 0; layer < tiny_.model.spec().layers; ++layer) {
      ASSERT_EQ(cache.snapshot(layer), fresh.snapshot(layer)) << "layer " << layer << ", " << held.size() << " tokens";
    }
    const std::span<const TokenId> pending = committed.last(1);
    ASSERT_EQ(feed(tiny_.model, cache, pending), feed(tiny_.model, fresh, pending));
    ASSERT_EQ(cache.truncate(static_cast<int>(held.size())), static_cast<int>(held.size()));
  }

  // A whole run: random trees, random accepted paths, now and then a cut, until the cache is full.
  void run(std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<TokenId> committed = random_tokens(random, 3);
    KvCache cache = tiny_.model.make_cache(kContext, GetParam().kv);
    feed(tiny_.model, cache, std::span(committed).first(committed.size() - 1));
    for (int step = 0; cache.size() < kContext; ++step) {
      const int room = std::min(kContext - cache.size(), kMaxTreeNodes);
      const int nodes = 1 + static_cast<int>(random() % std::min(room, step % 5 == 4 ? room : 12));
      const TokenTree tree = random_tree(random, committed.back(), nodes);
      const int base = cache.size();
      feed(tiny_.model, cache, tree);
      const std::vector<int> path = path_to(tree, choose(random, tree, step));
      cache.keep_path(base, path);
      const std::vector<TokenId> accepted = tokens_of(tree, path);
      committed.insert(committed.end(), accepted.begin() + 1, accepted.end());
      committed.push_back(static_cast<TokenId>(random() % 105));
      if (step % 7 == 6) {  // tokens after a stop are cut from the text and the cache
        committed.resize(committed.size() - random() % std::min<std::size_t>(committed.size() - 2, 5));
        ASSERT_EQ(cache.truncate(static_cast<int>(committed.size()) - 1), static_cast<int>(committed.size()) - 1);
      }
      if (cache.size() == kContext) break;
      ASSERT_NO_FATAL_FAILURE(expect_as_prefilled(cache, committed)) << "step " << step << " of seed " << seed;
    }
  }

  // The last node of the accepted path: none, the deepest, or any.
  static int choose(std::mt19937_64& random, const TokenTree& tree, int step) {
    if (step % 4 == 0) return 0;
    if (step % 4 == 1) {
      int deepest = 0;
      for (int i = 1; i < tree.size(); ++i) deepest = tree.depth(i) > tree.depth(deepest) ? i : deepest;
      return deepest;
    }
    return static_cast<int>(random() % tree.size());
  }

  static constexpr int kContext = 90;
  static TinyOptions options() {
    TinyOptions o;
    o.format = Format::q8_0;
    if (GetParam().kv == KvType::q8_0) o.head_dim = kKvBlock;
    return o;
  }
  TinyModel tiny_{options(), GetParam().backend};
};
INSTANTIATE_TEST_SUITE_P(Backends, Rollback,
                         testing::Values(Case{"ReferenceF32", "reference", KvType::f32},
                                         Case{"ReferenceF16", "reference", KvType::f16},
                                         Case{"ReferenceQ8_0", "reference", KvType::q8_0},
                                         Case{"CpuF32", "cpu", KvType::f32}, Case{"CpuF16", "cpu", KvType::f16},
                                         Case{"CpuQ8_0", "cpu", KvType::q8_0}),
                         [](const auto& info) { return info.param.name; });

TEST_P(Rollback, CacheEqualsAPrefillAfterAnyAcceptedPaths) {
  for (const std::uint64_t seed : {21, 22}) ASSERT_NO_FATAL_FAILURE(run(seed));
}

// A chain needs no moves: every accepted count of every length, by truncate and by keep_path alike.
TEST_P(Rollback, TruncatingAChainEqualsKeepingItsPath) {
  std::mt19937_64 random(24);
  const std::vector<TokenId> prompt = random_tokens(random, 10);
  for (int drafts = 0; drafts <= 4; ++drafts) {
    TokenTree chain(prompt.back());
    for (int i = 0; i < drafts; ++i) {
      chain.add(i, static_cast<TokenId>(random() % 105), ChildKind::deterministic, DraftSource::other);
    }
    for (int accepted = 0; accepted <= drafts; ++accepted) {
      const std::vector<int> path = path_to(chain, accepted);
      std::vector<TokenId> committed = prompt;
      const std::vector<TokenId> kept = tokens_of(chain, path);
      committed.insert(committed.end(), kept.begin() + 1, kept.end());
      committed.push_back(7);
      for (const bool by_path : {false, true}) {
        KvCache cache = tiny_.model.make_cache(kContext, GetParam().kv);
        feed(tiny_.model, cache, std::span(prompt).first(9));
        feed(tiny_.model, cache, chain);
        if (by_path) {
          cache.keep_path(9, path);
        } else {
          ASSERT_EQ(cache.truncate(9 + accepted + 1), 9 + accepted + 1);
        }
        ASSERT_NO_FATAL_FAILURE(expect_as_prefilled(cache, committed)) << accepted << " of " << drafts;
      }
    }
  }
}

TEST_P(Rollback, TheLastSlotIsUsableAndNoMore) {
  std::mt19937_64 random(25);
  KvCache cache = tiny_.model.make_cache(20, GetParam().kv);
  feed(tiny_.model, cache, random_tokens(random, 12));
  const TokenTree fits = random_tree(random, 1, 8), too_large = random_tree(random, 1, 9);
  EXPECT_THROW(feed(tiny_.model, cache, too_large), Error);
  EXPECT_EQ(cache.size(), 12);
  feed(tiny_.model, cache, fits);
  EXPECT_EQ(cache.size(), 20);
  EXPECT_THROW(feed(tiny_.model, cache, TokenTree(1)), Error);
  cache.keep_path(12, path_to(fits, 7));
  EXPECT_EQ(cache.size(), 12 + fits.depth(7) + 1);
}

// Exact repeats: the same prompt again, then a strict prefix of it, need only the tokens that are not held.
TEST_P(Rollback, ARepeatedPromptRunsOneTokenAgain) {
  std::mt19937_64 random(26);
  const std::vector<TokenId> prompt = random_tokens(random, 30);
  KvCache cache = tiny_.model.make_cache(kContext, GetParam().kv);
  const std::vector<float> cold = feed(tiny_.model, cache, prompt);
  ASSERT_EQ(cache.truncate(29), 29);
  EXPECT_EQ(feed(tiny_.model, cache, std::span(prompt).last(1)), cold);
  ASSERT_EQ(cache.truncate(11), 11);
  const std::vector<float> warm = feed(tiny_.model, cache, std::span(prompt).subspan(11, 1));
  KvCache other = tiny_.model.make_cache(kContext, GetParam().kv);
  EXPECT_EQ(warm, feed(tiny_.model, other, std::span(prompt).first(12)));
}

TEST_P(Rollback, CapacityIsCheckedAndCounted) {
  const ModelSpec& spec = tiny_.model.spec();
  EXPECT_THROW(tiny_.model.make_cache(0, GetParam().kv), Error);
  EXPECT_THROW(tiny_.model.make_cache(spec.context + 1, GetParam().kv), Error);
  const KvCache cache = tiny_.model.make_cache(spec.context, GetParam().kv);
  EXPECT_EQ(cache.capacity(), spec.context);
  // Half bits an element: q8_0 has an f16 scale for every 32.
  const int half_bits = GetParam().kv == KvType::f32 ? 64 : GetParam().kv == KvType::f16 ? 32 : 17;
  EXPECT_EQ(cache.bytes(), std::size_t{2} * spec.layers * spec.kv_width() * spec.context * half_bits / 16);
}

TEST(KvCache, Q8RefusesHeadsThatAreNoWholeBlocks) {
  TinyModel tiny({}, "cpu");
  ASSERT_EQ(tiny.model.spec().head_dim, 16);
  try {
    tiny.model.make_cache(8, KvType::q8_0);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::model);
    const std::string text = error.what();
    for (const char* part : {"kv_cache q8_0", "head_dim", "32", "16"}) {
      EXPECT_NE(text.find(part), std::string::npos) << text;
    }
  }
}

}  // namespace
}  // namespace tandem::test
