#include "tests/golden_test/golden_logits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "kernels/registry.h"
#include "src/arch/registry.h"
#include "tests/model_folder.h"

namespace tandem {
namespace {

GoldenText read_text(const nlohmann::json& row) {
  const nlohmann::json& int8 = row["int8_reference"];
  return {row["ids"],
          row["nll"],
          row["argmax"],
          row["margin"],
          row["last_top20"],
          row["last_logsumexp"],
          int8["mean_abs_nll_difference"],
          int8["argmax_misses_over_margin_1"]};
}

// Returns how far the logits are away at most.
double expect_last_row(const GoldenText& text, const std::vector<float>& logits, double tolerance) {
  double worst = 0;
  const double top = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float value : logits) sum += std::exp(value - top);
  EXPECT_NEAR(top + std::log(sum), text.last_logsumexp, tolerance);
  std::vector<float> largest(text.last_top.size());
  std::partial_sort_copy(logits.begin(), logits.end(), largest.begin(), largest.end(), std::greater<>());
  for (std::size_t i = 0; i < largest.size(); ++i) {
    EXPECT_NEAR(logits[text.last_top[i].first], text.last_top[i].second, tolerance) << "rank " << i;
    EXPECT_NEAR(largest[i], text.last_top[i].second, tolerance) << "rank " << i;
    worst = std::max(worst, std::abs(logits[text.last_top[i].first] - text.last_top[i].second));
  }
  return worst;
}

// NLL of every scored token less the golden one.
std::vector<double> differences(const GoldenText& text, const Scores& scores) {
  std::vector<double> out;
  for (std::size_t i = 0; i < text.nll.size(); ++i) out.push_back(-scores.logprobs[i + 1] - text.nll[i]);
  return out;
}

double mean_absolute(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += std::abs(value);
  return sum / static_cast<double>(values.size());
}

}  // namespace

GoldenModel::GoldenModel(std::string_view name, std::string_view file, std::string_view backend)
    : name_(name), pool_(std::make_unique<ThreadPool>(default_threads())), backend_(make_backend(backend, *pool_)) {
  model_.file = GgufFile::open(model_path(file));  // the rows are ids: no tokenizer
  model_.spec = read_model_spec(*model_.file);
  std::ifstream in(std::string(TANDEM_SOURCE_DIR) + "/tests/golden/logits.jsonl");
  for (std::string line; std::getline(in, line);) {
    const nlohmann::json row = nlohmann::json::parse(line);
    if (row["model"] != name_) continue;
    if (row.contains("greedy_ids")) {
      continuations_.push_back({row["prompt_ids"], row["greedy_ids"], row["greedy_margin"]});
    } else {
      texts_.push_back(read_text(row));
    }
  }
  EXPECT_GE(texts_.size(), 3u) << name_;
  EXPECT_GE(continuations_.size(), 4u) << name_;
}

void GoldenModel::expect_equal(double tolerance) {
  expect_equal([tolerance](const GoldenText&, const Scores&) { return GoldenBounds{tolerance, tolerance, tolerance}; });
}

void GoldenModel::expect_equal(const std::function<GoldenBounds(const GoldenText&, const Scores&)>& bounds_of) {
  for (const GoldenText& text : texts_) {
    const Scores scores = score(model_, *backend_, text.ids);
    const GoldenBounds bounds = bounds_of(text, scores);
    const std::vector<double> difference = differences(text, scores);
    double worst = 0;
    for (std::size_t i = 0; i < difference.size(); ++i) {
      EXPECT_NEAR(difference[i], 0, bounds.token) << name_ << " token " << i + 1;
      worst = std::max(worst, std::abs(difference[i]));
    }
    EXPECT_LE(mean_absolute(difference), bounds.mean) << name_;
    for (std::size_t i = 0; i < text.argmax.size(); ++i) {
      if (text.margin[i] < bounds.token) continue;
      EXPECT_EQ(scores.argmax[i], text.argmax[i]) << name_ << " after token " << i;
    }
    const double logit = expect_last_row(text, scores.last_logits, bounds.logit);
    std::printf(
        "%s, %s, %zu tokens: NLL differs by at most %.6f (bound %.6f), by %.6f (%.6f) on average, logits by "
        "%.6f (%.6f)\n",
        name_.c_str(), std::string(backend_->name()).c_str(), text.ids.size(), worst, bounds.token,
        mean_absolute(difference), bounds.mean, logit, bounds.logit);
  }
}

void GoldenModel::expect_as_close_as_llama(double factor) {
  std::vector<double> pooled;
  double llama = 0;
  int misses = 0, llama_misses = 0;
  for (const GoldenText& text : texts_) {
    const Scores scores = score(model_, *backend_, text.ids);
    const std::vector<double> difference = differences(text, scores);
    std::printf("%s, %s, %zu tokens: mean |NLL difference| %.5f, llama.cpp %.5f\n", name_.c_str(),
                std::string(backend_->name()).c_str(), text.ids.size(), mean_absolute(difference),
                text.llama_difference);
    pooled.insert(pooled.end(), difference.begin(), difference.end());
    llama += text.llama_difference * static_cast<double>(difference.size());
    llama_misses += text.llama_misses;
    for (std::size_t i = 0; i < text.argmax.size(); ++i) {
      if (text.margin[i] <= 1 || scores.argmax[i] == text.argmax[i]) continue;
      ++misses;
      ADD_FAILURE() << name_ << " after token " << i << ": argmax " << scores.argmax[i] << ", expected "
                    << text.argmax[i] << " by a margin of " << text.margin[i];
    }
  }
  llama /= static_cast<double>(pooled.size());
  std::printf("%s pooled over %zu tokens: %.5f, llama.cpp %.5f; argmax misses over margin 1: %d, llama.cpp %d\n",
              name_.c_str(), pooled.size(), mean_absolute(pooled), llama, misses, llama_misses);
  EXPECT_LE(mean_absolute(pooled), factor * llama) << name_;
}

void GoldenModel::expect_continuations(double close, double clear) {
  for (const GoldenContinuation& c : continuations_) {
    std::vector<TokenId> ids = c.prompt;
    ids.insert(ids.end(), c.greedy.begin(), c.greedy.end());
    const Scores scores = score(model_, *backend_, ids);
    int compared = 0;
    bool certain = true;
    for (std::size_t i = 0; i < c.greedy.size(); ++i) {
      certain &= c.margin[i] >= close;
      if (!certain && c.margin[i] <= clear) continue;
      EXPECT_EQ(scores.argmax[c.prompt.size() - 1 + i], c.greedy[i]) << name_ << " step " << i;
      ++compared;
    }
    std::printf("%s, %s: compared %d of %zu greedy steps\n", name_.c_str(), std::string(backend_->name()).c_str(),
                compared, c.greedy.size());
  }
}

}  // namespace tandem
