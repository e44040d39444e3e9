// The forward pass as a whole, on tiny models: rows that never depend on their company, and inputs that do not fit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "src/base/error.h"
#include "tests/model/tiny_model.h"

namespace tandem::test {
namespace {

struct Case {
  std::string name, backend;
  TinyOptions options;
  KvType kv;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

TinyOptions tiny(std::string architecture, Format format, bool tied) {
  const bool wide = format == Format::q4_k || format == Format::q6_k;
  TinyOptions options = wide ? wide_options(format) : TinyOptions{};
  options.architecture = std::move(architecture);
  options.format = format;
  options.tied = tied;
  return options;
}

std::vector<Case> cases() {
  return {{"ReferenceLlamaF32", "reference", tiny("llama", Format::f32, false), KvType::f32},
          {"ReferenceQwen2Q8_0", "reference", tiny("qwen2", Format::q8_0, true), KvType::f16},
          {"ReferenceQwen3F32", "reference", tiny("qwen3", Format::f32, false), KvType::f32},
          {"CpuQwen3Q8_0", "cpu", tiny("qwen3", Format::q8_0, true), KvType::f16},
          {"ReferencePhi3F32", "reference", tiny("phi3", Format::f32, false), KvType::f32},
          {"CpuPhi3Q4_K", "cpu", tiny("phi3", Format::q4_k, false), KvType::f16},
          {"ReferenceGemma2F32", "reference", tiny("gemma2", Format::f32, false), KvType::f32},
          {"ReferenceGemma3Q8_0", "reference", tiny("gemma3", Format::q8_0, true), KvType::f16},
          {"CpuGemma2Q4_K", "cpu", tiny("gemma2", Format::q4_k, true), KvType::f16},
          {"CpuGemma3Q8_0", "cpu", tiny("gemma3", Format::q8_0, true), KvType::f16},
          {"CpuLlamaF32", "cpu", tiny("llama", Format::f32, false), KvType::f16},
          {"CpuQwen2Q8_0", "cpu", tiny("qwen2", Format::q8_0, true), KvType::f16},
          {"CpuQwen2Q4_K", "cpu", tiny("qwen2", Format::q4_k, false), KvType::f16},
          {"CpuLlamaQ6_K", "cpu", tiny("llama", Format::q6_k, true), KvType::f32}};
}

class Forward : public testing::TestWithParam<Case> {
 protected:
  TinyModel make(int threads = 1) const { return TinyModel(GetParam().options, GetParam().backend, threads); }
  KvCache cache(const TinyModel& tiny) const {
    return tiny.model.make_cache(GetParam().options.context, GetParam().kv);
  }
};
INSTANTIATE_TEST_SUITE_P(Backends, Forward, testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.name; });

std::vector<std::vector<std::byte>> snapshots(const KvCache& cache, int layers) {
  std::vector<std::vector<std::byte>> all;
  for (int layer = 0; layer < layers; ++layer) all.push_back(cache.snapshot(layer));
  return all;
}

// Bits of a row, so that NaN and the sign of zero count.
std::vector<std::uint32_t> bits(std::span<const float> row) {
  std::vector<std::uint32_t> out(row.size());
  std::memcpy(out.data(), row.data(), row.size_bytes());
  return out;
}

TEST_P(Forward, TreeRowsEqualTheirPathsRunAlone) {
  TinyModel tiny = make();
  std::mt19937_64 random(11);
  KvCache tree_cache = cache(tiny), path_cache = cache(tiny);
  for (const auto& [before, nodes] : {std::pair{0, 7}, {37, 2}, {37, 16}, {3, kMaxTreeNodes}}) {
    const std::vector<TokenId> prompt = random_tokens(random, before);
    tree_cache.clear();
    path_cache.clear();
    feed(tiny.model, tree_cache, prompt);
    feed(tiny.model, path_cache, prompt);
    const TokenTree tree = random_tree(random, 5, nodes);
    const Logits logits = feed(tiny.model, tree_cache, tree);
    std::vector<std::vector<std::uint32_t>> rows;
    for (int node = 0; node < nodes; ++node) rows.push_back(bits(logits.row(node)));

    for (int leaf = 0; leaf < nodes; ++leaf) {
      if (tree.next_child(leaf, leaf) >= 0) continue;
      const std::vector<int> path = path_to(tree, leaf);
      for (const int node : path) {
        const std::vector<TokenId> token{tree.token(node)};
        ASSERT_EQ(bits(feed(tiny.model, path_cache, token)), rows[node]) << "node " << node << " of " << nodes;
      }
      ASSERT_EQ(path_cache.truncate(before), before);
    }
  }
}

// The prompt in passes of any size, then a tree, on any number of threads.
TEST_P(Forward, ChunkingAndThreadsChangeNoBit) {
  std::mt19937_64 random(12);
  const std::vector<TokenId> prompt = random_tokens(random, 66);
  const TokenTree tree = random_tree(random, 5, 12);
  std::vector<std::uint32_t> expected_logits, expected_tree;
  std::vector<std::vector<std::byte>> expected_cache;
  for (const auto& [threads, chunks] :
       {std::pair<int, std::vector<int>>{1, {66, 1, 2, 7, 64}}, {2, {66, 7, 1}}, {3, {66, 7}}}) {
    TinyModel tiny = make(threads);
    KvCache kv = cache(tiny);
    for (const int chunk : chunks) {
      kv.clear();
      const std::vector<std::uint32_t> logits = bits(feed(tiny.model, kv, prompt, chunk));
      const std::vector<std::uint32_t> tree_logits = bits(feed(tiny.model, kv, tree).data);
      const auto content = snapshots(kv, tiny.model.spec().layers);
      if (expected_logits.empty()) {
        expected_logits = logits;
        expected_tree = tree_logits;
        expected_cache = content;
      }
      ASSERT_EQ(logits, expected_logits) << threads << " threads, chunks of " << chunk;
      ASSERT_EQ(tree_logits, expected_tree) << threads << " threads, chunks of " << chunk;
      ASSERT_EQ(content, expected_cache) << threads << " threads, chunks of " << chunk;
    }
  }
}

TEST_P(Forward, EveryRowOfAPassCanGiveItsLogits) {
  TinyModel tiny = make();
  std::mt19937_64 random(13);
  const std::vector<TokenId> prompt = random_tokens(random, 9);
  KvCache all = cache(tiny), single = cache(tiny);
  const std::vector<Position> positions{0, 1, 2, 3, 4, 5, 6, 7, 8};
  const std::vector<int> wanted{1, 4, 8};
  const Logits logits = tiny.model.forward({prompt, positions, {}, wanted}, all);
  std::vector<std::vector<std::uint32_t>> rows;
  for (std::size_t i = 0; i < wanted.size(); ++i) rows.push_back(bits(logits.row(static_cast<int>(i))));
  for (std::size_t i = 0; i < prompt.size(); ++i) {
    const std::vector<std::uint32_t> alone = bits(feed(tiny.model, single, std::span(prompt).subspan(i, 1)));
    const auto at = std::find(wanted.begin(), wanted.end(), static_cast<int>(i));
    if (at == wanted.end()) continue;
    EXPECT_EQ(alone, rows[at - wanted.begin()]) << "row " << i;
  }
}

// The weights matter, and so does the order of the tokens: guards the tests above against a model that is constant.
TEST_P(Forward, LogitsDependOnEveryToken) {
  TinyModel tiny = make();
  std::mt19937_64 random(14);
  std::vector<TokenId> prompt = random_tokens(random, 12);
  KvCache kv = cache(tiny);
  const std::vector<float> logits = feed(tiny.model, kv, prompt);
  EXPECT_TRUE(std::all_of(logits.begin(), logits.end(), [](float x) { return std::isfinite(x); }));
  for (TokenId& token : prompt) {
    const TokenId kept = std::exchange(token, (token + 1) % 100);
    kv.clear();
    EXPECT_NE(feed(tiny.model, kv, prompt), logits);
    token = kept;
  }
}

// Exactly one logit moves when one row of the head does: the output matrix where there is one, else the embedding.
TEST_P(Forward, OneRowOfTheHeadIsOneLogit) {
  TinyOptions options = GetParam().options;
  constexpr int kRow = 77;
  const std::vector<TokenId> prompt{3, 1, 4, 1, 5, 9, 2, 6};
  const auto logits_of = [&](const std::string& edited) {
    options.edit = [&](std::string_view name, std::string& data) {
      if (name != edited) return;
      const std::size_t row_bytes = data.size() / options.rows;
      std::copy_n(data.begin() + static_cast<std::ptrdiff_t>(row_bytes * (kRow + 1)), row_bytes,
                  data.begin() + static_cast<std::ptrdiff_t>(row_bytes * kRow));
    };
    TinyModel tiny(options, GetParam().backend);
    KvCache kv = cache(tiny);
    return feed(tiny.model, kv, prompt);
  };
  const std::vector<float> before = logits_of("none");
  const std::vector<float> after = logits_of(options.tied ? "token_embd.weight" : "output.weight");
  for (int id = 0; id < options.rows; ++id) {
    if (id == kRow) {
      EXPECT_NE(after[id], before[id]);
      EXPECT_EQ(after[id], after[kRow + 1]);
    } else {
      EXPECT_EQ(after[id], before[id]) << "id " << id;
    }
  }
  if (options.tied) return;
  EXPECT_EQ(logits_of("token_embd.weight"), before);  // row 77 is no token of the prompt
}

TEST_P(Forward, RefusesInputThatDoesNotFitAndLeavesTheCacheAlone) {
  TinyModel tiny = make();
  KvCache kv = tiny.model.make_cache(10, GetParam().kv);
  const std::vector<TokenId> prompt{1, 2, 3, 4, 5, 6, 7, 8};
  feed(tiny.model, kv, prompt);
  const auto before = snapshots(kv, tiny.model.spec().layers);
  const auto refused = [&](std::vector<TokenId> tokens, std::vector<Position> positions,
                           std::vector<std::uint64_t> ancestors, std::vector<int> rows, const std::string& message) {
    try {
      tiny.model.forward({tokens, positions, ancestors, rows}, kv);
      ADD_FAILURE() << "accepted, expected: " << message;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::input);
      EXPECT_THAT(error.what(), testing::HasSubstr(message));
    }
    EXPECT_EQ(kv.size(), 8);
    EXPECT_EQ(snapshots(kv, tiny.model.spec().layers), before);
  };
  refused({1, 2, 3}, {8, 9, 10}, {}, {2}, "8 cached tokens and 3 rows exceed the context of 10");
  refused({}, {}, {}, {}, "0 rows");
  refused(std::vector<TokenId>(200, 1), std::vector<Position>(200, 0), {}, {}, "200 rows, expected 1..128");
  refused({1, -1}, {8, 9}, {}, {1}, "token id -1 is outside 0..111");
  refused({1, 112}, {8, 9}, {}, {1}, "token id 112 is outside 0..111");
  refused({1, 2}, {8, -1}, {}, {1}, "position -1");
  refused({1, 2}, {8, 512}, {}, {1}, "position 512 is outside 0..511");
  refused({1, 2}, {8}, {}, {1}, "1 positions");
  refused({1, 2}, {8, 9}, {1}, {1}, "1 ancestor masks");
  refused({1, 2}, {8, 9}, {1, 1}, {1}, "ancestor mask of row 1");
  refused({1, 2}, {8, 9}, {3, 3}, {1}, "ancestor mask of row 0");
  refused({1, 2}, {8, 9}, {}, {2}, "logits of row 2");
  refused({1, 2}, {8, 9}, {}, {1, 1}, "logits of row 1 after row 1");
  refused({1, 2}, {8, 9}, {}, {-1}, "logits of row -1");
}

}  // namespace
}  // namespace tandem::test
