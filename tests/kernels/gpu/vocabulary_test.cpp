// Picking tokens on the device against the host's sampler and against sorting.
#include "kernels/cuda/vocabulary.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "kernels/cuda/compact.h"
#include "src/sample/sampler.h"
#include "tests/kernels/gpu/device_array.h"

namespace tandem::test {
namespace {

using namespace TANDEM_GPU;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Rows side by side on the device, two floats apart.
struct DeviceLogits {
  std::vector<std::vector<float>> rows;
  int vocabulary, stride;
  DeviceArray<float> data;

  explicit DeviceLogits(std::vector<std::vector<float>> values)
      : rows(std::move(values)),
        vocabulary(static_cast<int>(rows.front().size())),
        stride(vocabulary + 2),
        data(laid_out()) {}

  std::vector<float> laid_out() const {
    std::vector<float> all(rows.size() * stride, kInfinity);  // between rows: would win if it were read
    for (std::size_t r = 0; r < rows.size(); ++r) std::copy(rows[r].begin(), rows[r].end(), all.begin() + r * stride);
    return all;
  }
  LogitRows view(const std::uint32_t* usable = nullptr) const {
    return {data.data(), static_cast<int>(rows.size()), vocabulary, stride, usable};
  }
};

std::vector<float> random_row(int vocabulary, unsigned seed, float scale = 4) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> row(vocabulary);
  for (float& logit : row) logit = scale * normal(random);
  return row;
}

// Ids of a row by logit, then by id; NaN and -inf left out.
std::vector<TokenId> ranked(const std::vector<float>& row) {
  std::vector<TokenId> ids(row.size());
  std::iota(ids.begin(), ids.end(), 0);
  std::erase_if(ids, [&](TokenId id) { return !(row[id] > -kInfinity); });
  std::stable_sort(ids.begin(), ids.end(), [&](TokenId a, TokenId b) { return row[a] > row[b]; });
  return ids;
}

// Rows that a careless order gets wrong.
std::vector<std::vector<float>> awkward_rows(int vocabulary) {
  std::vector<std::vector<float>> rows;
  rows.push_back(random_row(vocabulary, 1));
  rows.emplace_back(vocabulary, 1.5f);        // all equal
  rows.emplace_back(vocabulary, -kInfinity);  // nothing usable
  rows.emplace_back(vocabulary, NAN);
  rows.push_back(random_row(vocabulary, 2, 1e-40f));  // subnormal
  rows.push_back(random_row(vocabulary, 3));
  for (int i = 0; i < vocabulary; i += 3) rows.back()[i] = i % 2 == 0 ? NAN : -NAN;
  rows.push_back(random_row(vocabulary, 4));
  for (float& logit : rows.back()) logit = std::round(logit);  // many ties, both zeros
  rows.back()[vocabulary / 2] = -0.f;
  rows.emplace_back(vocabulary, -kInfinity);
  rows.back()[vocabulary - 1] = -std::numeric_limits<float>::max();  // one usable
  rows.push_back(random_row(vocabulary, 5));
  rows.back()[vocabulary / 3] = rows.back()[vocabulary - 1] = kInfinity;
  return rows;
}

using Vocabulary = DeviceTest;

TEST_F(Vocabulary, ArgmaxIsTheFirstOfTheRanking) {
  for (const int vocabulary : {1, 2, 31, 33, 1000, 9000}) {
    const DeviceLogits logits(awkward_rows(vocabulary));
    const int rows = static_cast<int>(logits.rows.size());
    VocabularyOps ops(rows, vocabulary, false, stream().get());
    const auto ids = in_every_order([&] {
      DeviceArray<TokenId> out(rows);
      ops.argmax(out.data(), logits.view());
      stream().synchronize();
      return out.read();
    });
    for (int r = 0; r < rows; ++r) {
      const auto order = ranked(logits.rows[r]);
      EXPECT_EQ(ids[r], order.empty() ? -1 : order[0]) << "row " << r << " of " << vocabulary;
    }
  }
}

TEST_F(Vocabulary, TopKIsTheFrontOfTheRanking) {
  for (const int vocabulary : {1, 7, 257, 2500}) {
    const DeviceLogits logits(awkward_rows(vocabulary));
    const int rows = static_cast<int>(logits.rows.size());
    VocabularyOps ops(rows, vocabulary, false, stream().get());
    for (const int k : {1, 2, 40, 256}) {
      const auto picked = in_every_order([&] {
        DeviceArray<TokenId> ids(static_cast<std::size_t>(rows) * k);
        DeviceArray<float> values(static_cast<std::size_t>(rows) * k);
        ops.top_k(ids.data(), values.data(), logits.view(), k);
        stream().synchronize();
        return std::pair(ids.read(), values.read());
      });
      for (int r = 0; r < rows; ++r) {
        const auto order = ranked(logits.rows[r]);
        for (int i = 0; i < k; ++i) {
          const bool usable = i < static_cast<int>(order.size());
          ASSERT_EQ(picked.first[r * k + i], usable ? order[i] : -1) << "row " << r << " place " << i;
          ASSERT_EQ(picked.second[r * k + i], usable ? logits.rows[r][order[i]] : -kInfinity);
        }
      }
    }
  }
}

TEST_F(Vocabulary, MaskedTokensAreNeverChosen) {
  constexpr int kVocabulary = 700;
  const DeviceLogits logits({random_row(kVocabulary, 8), random_row(kVocabulary, 9)});
  std::vector<std::uint32_t> usable((kVocabulary + 31) / 32);
  auto masked = logits.rows;
  std::mt19937 random(3);
  for (int token = 0; token < kVocabulary; ++token) {
    const bool may = random() % 3 == 0;
    if (may) usable[token / 32] |= 1u << token % 32;
    for (auto& row : masked) row[token] = may ? row[token] : -kInfinity;
  }
  const DeviceArray<std::uint32_t> bits(usable);
  VocabularyOps ops(2, kVocabulary, true, stream().get());
  DeviceArray<TokenId> best(2), top(2 * 5);
  DeviceArray<float> values(2 * 5);
  ops.argmax(best.data(), logits.view(bits.data()));
  ops.top_k(top.data(), values.data(), logits.view(bits.data()), 5);
  stream().synchronize();
  for (int r = 0; r < 2; ++r) {
    const auto order = ranked(masked[r]);
    EXPECT_EQ(best.read()[r], order[0]);
    for (int i = 0; i < 5; ++i) EXPECT_EQ(top.read()[5 * r + i], order[i]);
  }
  const DeviceArray<std::uint32_t> positions(std::vector<std::uint32_t>{3, 4});
  for (const DrawParams& params : {DrawParams{5.0}, DrawParams{5.0, 0, 0.99}, DrawParams{5.0, 200}}) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      ops.draw(best.data(), logits.view(bits.data()), params, {seed, 0}, positions.data());
      stream().synchronize();
      for (const TokenId id : best.read()) ASSERT_TRUE(id >= 0 && (usable[id / 32] >> id % 32 & 1)) << id;
    }
  }
}

// What the host draws from a row: the whole chain, then plain decoding's noise.
TokenId host_draw(const std::vector<float>& row, const DrawParams& params, const Noise& noise, std::uint32_t position) {
  SamplingOptions options;
  options.temperature = params.temperature;
  options.top_k = params.top_k;
  options.top_p = params.top_p;
  options.min_p = params.min_p;
  Sampler sampler(options, noise, TokenMask());
  Distribution distribution;
  sampler.distribution(row, Context(), distribution);
  return sampler.draw_with_noise(distribution, position);
}

std::vector<TokenId> device_draw(const DeviceLogits& logits, const DrawParams& params, const Noise& noise,
                                 const std::vector<std::uint32_t>& positions, const Stream& stream) {
  VocabularyOps ops(static_cast<int>(logits.rows.size()), logits.vocabulary, true, stream.get());
  return in_every_order([&] {
    const DeviceArray<std::uint32_t> places(positions);
    DeviceArray<TokenId> ids(logits.rows.size());
    ops.draw(ids.data(), logits.view(), params, noise, places.data());
    stream.synchronize();
    return ids.read();
  });
}

TEST_F(Vocabulary, DrawsAreThoseOfTheHost) {
  const std::vector<DrawParams> all{{1.0},
                                    {0.7},
                                    {0.05},
                                    {1e-6},
                                    {50.0},
                                    {0.7, 40},
                                    {0.7, 40, 0.95},
                                    {1.0, 1},
                                    {1.5, 256, 0.5, 0.01},
                                    {1.0, 0, 0.9},
                                    {2.0, 0, 0.999, 0.001},
                                    {1.0, 0, 1, 0.05},
                                    {1.0, 0, 1e-9}};
  int draws = 0, left_to_the_host = 0;
  for (const int vocabulary : {3, 300, 5000}) {
    std::vector<std::vector<float>> rows;
    std::vector<std::uint32_t> positions;
    for (unsigned r = 0; r < 3; ++r) {
      rows.push_back(random_row(vocabulary, 40 + r));
      positions.push_back(1000 * r + 7);
    }
    rows.back()[1] = NAN;
    rows.front()[vocabulary / 2] = rows.front()[0] = kInfinity;
    const DeviceLogits logits(rows);
    for (const DrawParams& params : all) {
      for (const Noise& noise : {Noise{1, 0}, Noise{0xfeedfacecafebeef, 3}}) {
        const auto ids = device_draw(logits, params, noise, positions, stream());
        for (std::size_t r = 0; r < rows.size(); ++r) {
          ++draws;
          if (ids[r] == kUndecided) {
            ++left_to_the_host;
            continue;
          }
          EXPECT_EQ(ids[r], host_draw(rows[r], params, noise, positions[r]))
              << "row " << r << " of " << vocabulary << ", temperature " << params.temperature << " top_k "
              << params.top_k << " top_p " << params.top_p << " min_p " << params.min_p;
        }
      }
    }
  }
  EXPECT_LE(left_to_the_host, draws / 20);  // top-p cuts between two infinities
}

// Candidates whose order roundings could change are named, and only those: a little further apart they are decided.
TEST_F(Vocabulary, NearlyEqualArrivalsAreLeftToTheHost) {
  const Noise noise{3, 0};
  const auto wait = [&](std::uint32_t position, TokenId token) {
    return -std::log(uniform_from_word(noise.token_words(position, token)[token & 3]));
  };
  std::uint32_t position = 0;  // at which the second of two tokens needs hardly another logit to arrive with the first
  while (std::abs(std::log(wait(position, 1) / wait(position, 0))) > 1e-5) ++position;
  const float level = static_cast<float>(std::log(wait(position, 1) / wait(position, 0)));
  const DeviceLogits logits({{0.f, level}, {0.f, level + 1e-9f}, {0.f, level - 1e-9f}});
  for (const DrawParams& params : {DrawParams{1.0}, DrawParams{1.0, 2}}) {
    const auto ids = device_draw(logits, params, noise, {position, position, position}, stream());
    EXPECT_EQ(ids[0], kUndecided);
    for (int r : {1, 2}) EXPECT_EQ(ids[r], host_draw(logits.rows[r], params, noise, position));
    EXPECT_EQ(ids[1], 1);
    EXPECT_EQ(ids[2], 0);
  }
}

TEST_F(Vocabulary, CutsThatRoundingsDecideAreLeftToTheHost) {
  const std::vector<float> halving{0, std::log(0.5f), std::log(0.25f), -9};
  const double second = std::exp(double{halving[1]}), third = std::exp(double{halving[2]});
  const double total = 1 + second + third;
  const DeviceLogits logits({halving});
  // What is left open, and what a little more or less decides.
  const std::vector<std::pair<DrawParams, bool>> cases{
      {{1, 0, 1, second}, true},
      {{1, 0, 1, second * (1 + 1e-9)}, false},
      {{1, 0, 1, second * (1 - 1e-9)}, false},
      {{1, 3, 1, third}, true},
      {{1, 3, 1, third * (1 + 1e-9)}, false},
      {{1, 3, (1 + second) / total}, true},
      {{1, 3, (1 + second) / total * (1 + 1e-9)}, false},
      {{1, 3, (1 + second) / total * (1 - 1e-9)}, false},
      {{1e16, 3, 0.5}, true},  // all weights are about equal: their order is not that of the logits
      {{1e16, 3, 1}, false},
      {{1, 3, 0}, false}};
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const TokenId id = device_draw(logits, cases[i].first, {4, 0}, {9}, stream())[0];
    EXPECT_EQ(id == kUndecided, cases[i].second) << "case " << i;
    if (!cases[i].second) {
      EXPECT_EQ(id, host_draw(halving, cases[i].first, {4, 0}, 9)) << "case " << i;
    }
  }
}

TEST_F(Vocabulary, DrawsOfARowDoNotDependOnTheOtherRows) {
  const DeviceLogits all({random_row(900, 1), random_row(900, 2), random_row(900, 3)});
  for (const DrawParams& params : {DrawParams{1.0}, DrawParams{1.0, 20, 0.9}, DrawParams{1.0, 0, 0.9}}) {
    const auto together = device_draw(all, params, {5, 0}, {10, 11, 12}, stream());
    for (unsigned r = 0; r < 3; ++r) {
      const DeviceLogits alone({all.rows[r]});
      EXPECT_EQ(device_draw(alone, params, {5, 0}, {10 + r}, stream())[0], together[r]);
    }
  }
}

TEST_F(Vocabulary, RowsWithoutAUsableLogitDrawNothing) {
  const DeviceLogits logits({std::vector<float>(50, NAN), random_row(50, 2)});
  for (const DrawParams& params : {DrawParams{1.0}, DrawParams{1.0, 20, 0.9}, DrawParams{1.0, 0, 0.9}}) {
    const auto ids = device_draw(logits, params, {5, 0}, {1, 2}, stream());
    EXPECT_EQ(ids[0], -1);
    EXPECT_GE(ids[1], 0);
  }
}

TEST_F(Vocabulary, GatherTakesTheTokensNamed) {
  const auto row = random_row(100, 6);
  const DeviceArray<float> logits(row);
  const std::vector<TokenId> tokens{99, 0, 5, 5, 42};
  const DeviceArray<TokenId> ids(tokens);
  DeviceArray<float> out(tokens.size());
  gather_logits(out.data(), logits.data(), ids.data(), static_cast<int>(tokens.size()), stream().get());
  stream().synchronize();
  for (std::size_t i = 0; i < tokens.size(); ++i) EXPECT_EQ(out.read()[i], row[tokens[i]]);
}

TEST_F(Vocabulary, CompactionKeepsWhatIsAboveTheBarInOrder) {
  auto row = random_row(1000, 6);
  row[17] = NAN;
  row[3] = 2.5f;  // not above
  const DeviceArray<float> logits(row);
  DeviceArray<TokenId> ids(row.size());
  DeviceArray<float> values(row.size());
  for (const float bar : {2.5f, -kInfinity, kInfinity}) {
    const int count = compact_above(ids.data(), values.data(), logits.data(), 1000, bar, stream().get());
    std::vector<TokenId> want;
    for (TokenId id = 0; id < 1000; ++id) {
      if (row[id] > bar) want.push_back(id);
    }
    ASSERT_EQ(count, static_cast<int>(want.size()));
    for (int i = 0; i < count; ++i) {
      EXPECT_EQ(ids.read()[i], want[i]);
      EXPECT_EQ(values.read()[i], row[want[i]]);
    }
  }
}

}  // namespace
}  // namespace tandem::test
