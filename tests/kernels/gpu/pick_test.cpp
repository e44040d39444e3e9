// The op pick() against the host's sampler on the same bits, and what it copies.
#include <cmath>
#include <limits>
#include <random>

#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/platform.h"
#include "src/sample/sampler.h"
#include "tests/kernels/gpu/device_array.h"
#include "tests/kernels/kernel_fixture.h"

namespace tandem::test {
namespace {

class Pick : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (!IsSkipped()) backend_ = TANDEM_GPU::make_cuda_backend(pool_);
  }
  // Rows on the device.
  Rows upload(const std::vector<std::vector<float>>& rows) {
    const int cols = static_cast<int>(rows.front().size());
    memory_ = backend_->allocate(rows.size() * rows.front().size() * sizeof(float));
    for (std::size_t i = 0; i < rows.size(); ++i) {
      backend_->write(memory_->data() + i * rows.front().size() * sizeof(float), std::as_bytes(std::span(rows[i])));
    }
    return {reinterpret_cast<float*>(memory_->data()), static_cast<int>(rows.size()), cols, cols};
  }
  static std::vector<std::vector<float>> random_rows(int rows, int vocabulary, unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    std::vector<std::vector<float>> all(static_cast<std::size_t>(rows));
    for (auto& row : all) {
      row.resize(static_cast<std::size_t>(vocabulary));
      for (float& logit : row) logit = std::round(12 * normal(random)) / 4;  // with ties
    }
    return all;
  }

  ThreadPool pool_{1};
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Buffer> memory_;
};

TEST_F(Pick, TokensAreThoseOfTheSamplerAndNothingElseIsCopied) {
  constexpr int kVocabulary = 601;
  std::vector<bool> may(kVocabulary, true);
  for (int id = 0; id < kVocabulary; id += 5) may[static_cast<std::size_t>(id)] = false;
  const TokenMask mask(may);
  const std::vector<std::uint32_t> usable = mask.bits(kVocabulary);
  SamplingOptions greedy, defaults, all, bar;
  greedy.temperature = 0;
  all.top_k = bar.top_k = 0;
  all.top_p = bar.top_p = 1;
  bar.min_p = 0.02;
  int picked = 0, left = 0;
  for (const SamplingOptions& options : {greedy, defaults, all, bar}) {
    for (const int rows : {1, 3, 17, 64, 2}) {
      const auto values = random_rows(rows, kVocabulary, static_cast<unsigned>(rows));
      const Rows logits = upload(values);
      Sampler sampler(options, {5, 1}, mask);
      std::vector<std::uint32_t> positions;
      for (int i = 0; i < rows; ++i) positions.push_back(static_cast<std::uint32_t>(100 + i / 2));
      Picking picking = sampler.picking().value();
      picking.usable = usable;
      picking.positions = positions;
      const std::uint64_t before = backend_->counts().bytes_to_host;
      const std::span<const TokenId> ids = backend_->pick(logits, picking);
      EXPECT_EQ(backend_->counts().bytes_to_host - before, rows * sizeof(TokenId));
      ASSERT_EQ(ids.size(), static_cast<std::size_t>(rows));
      for (std::size_t i = 0; i < ids.size(); ++i) {
        ++(ids[i] < 0 ? left : picked);
        if (ids[i] < 0) continue;
        Distribution p;
        sampler.distribution(values[i], Context(), p);
        EXPECT_EQ(ids[i], sampler.draw_with_noise(p, positions[i])) << options.temperature << " row " << i;
      }
    }
  }
  EXPECT_LE(left, picked / 50);
}

TEST_F(Pick, CandidatesGiveTheSamplersDistribution) {
  constexpr int kVocabulary = 601;
  std::vector<bool> may(kVocabulary, true);
  for (int id = 0; id < kVocabulary; id += 5) may[static_cast<std::size_t>(id)] = false;
  const TokenMask mask(may);
  const std::vector<std::uint32_t> usable = mask.bits(kVocabulary);
  for (const int top_k : {1, 7, 40, 256}) {
    for (const int rows : {1, 17, 64}) {
      auto values = random_rows(rows, kVocabulary, static_cast<unsigned>(rows + top_k));
      values[0].assign(kVocabulary, NAN);  // fewer than there are places for
      values[0][3] = values[0][9] = 1;
      Sampler sampler({0.7, top_k, 0.95, 0.001}, {5, 1}, mask);
      Picking picking = sampler.picking().value();
      picking.usable = usable;
      picking.candidates = top_k;
      const Rows uploaded = upload(values);
      const std::uint64_t before = backend_->counts().bytes_to_host;
      const std::span<const Candidate> best = backend_->best(uploaded, picking);
      ASSERT_EQ(best.size(), static_cast<std::size_t>(rows) * top_k);
      EXPECT_EQ(backend_->counts().bytes_to_host - before, best.size() * 8);
      Logits logits;
      logits.candidates = best;
      logits.per_row = top_k;
      for (int row = 0; row < rows; ++row) {
        Distribution got, want;
        sampler.distribution(logits, row, Context(), got);
        sampler.distribution(values[static_cast<std::size_t>(row)], Context(), want);
        ASSERT_EQ(got.tokens, want.tokens) << "row " << row << " top_k " << top_k;
        ASSERT_EQ(got.probabilities, want.probabilities) << "row " << row << " top_k " << top_k;
      }
    }
  }
}

TEST_F(Pick, ARowWithoutAUsableTokenIsLeftToTheHost) {
  auto values = random_rows(3, 50, 1);
  values[1].assign(50, NAN);
  const Rows logits = upload(values);
  const std::vector<std::uint32_t> positions{1, 2, 3};
  for (const double temperature : {0.0, 1.0}) {
    const auto ids = backend_->pick(logits, {.temperature = temperature, .top_k = 5, .positions = positions});
    EXPECT_GE(ids[0], 0);
    EXPECT_LT(ids[1], 0);
    EXPECT_GE(ids[2], 0);
  }
}

TEST_F(Pick, WhatItCannotDoIsNotPicked) {
  const Rows logits = upload(random_rows(1, 50, 1));
  const std::vector<std::uint32_t> positions{1};
  EXPECT_TRUE(backend_->pick(logits, {.temperature = 1, .top_k = 257, .positions = positions}).empty());
  EXPECT_TRUE(backend_->pick(logits, {.temperature = 1, .top_p = 0.9, .positions = positions}).empty());
  EXPECT_FALSE(backend_->pick(logits, {.temperature = 1, .min_p = 0.9, .positions = positions}).empty());
  EXPECT_TRUE(backend_->best(logits, {.temperature = 1, .candidates = 257}).empty());
}

// Vocabularies of a target and a draft, in turns.
TEST_F(Pick, RowsOfAnyWidthFollowEachOther) {
  for (const int vocabulary : {50, 5000, 50, 70, 5000}) {
    const auto values = random_rows(2, vocabulary, 9);
    const Rows logits = upload(values);
    const auto ids = backend_->pick(logits, {});
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(ids[i], std::ranges::max_element(values[i]) - values[i].begin());
    }
  }
}

}  // namespace
}  // namespace tandem::test
