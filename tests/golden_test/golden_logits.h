// Compares forward passes of real models with tests/golden/logits.jsonl, made by llama.cpp from F32 weights.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/backend.h"
#include "src/engine/model_files.h"

namespace tandem {

struct GoldenText {
  std::vector<TokenId> ids;
  std::vector<double> nll;                           // [ids - 1]: of id i + 1 given the ids up to i
  std::vector<TokenId> argmax;                       // [ids]: the best next id
  std::vector<double> margin;                        // [ids]: how far the best logit lies above the second
  std::vector<std::pair<TokenId, double>> last_top;  // the last row's 20 largest logits, descending
  double last_logsumexp;
  double llama_difference;  // mean absolute NLL difference of llama.cpp's int8 path
  int llama_misses;         // its argmax misses where the margin exceeds 1
};

struct GoldenContinuation {
  std::vector<TokenId> prompt, greedy;
  std::vector<double> margin;  // one a greedy id
};

// One model's golden rows, and the model on a backend.
class GoldenModel {
 public:
  // `name` as in the rows; `backend` as make_backend takes it.
  GoldenModel(std::string_view name, std::string_view file, std::string_view backend);

  // Every token of every text: log-probability within `tolerance`, argmax equal unless the golden margin is below
  // `tolerance`, and the last row's top 20 and log-sum-exp within `logit`. Each text's mean absolute difference: at
  // most `mean`.
  void expect_equal(double tolerance, double mean, double logit);
  void expect_equal(double tolerance) { expect_equal(tolerance, tolerance, tolerance); }

  // Mean absolute NLL difference, pooled over all scored tokens, at most `factor` times llama.cpp's; argmax equal
  // wherever the margin exceeds 1. Prints both.
  void expect_as_close_as_llama(double factor);

  // Greedy continuations agree up to the first step whose margin is below `close`; beyond it, where decoding by itself
  // might have gone another way, wherever the margin exceeds `clear`. Teacher-forced, so in one pass.
  void expect_continuations(double close, double clear);

 private:
  std::string name_;
  ModelFile model_;
  std::unique_ptr<ThreadPool> pool_;
  std::unique_ptr<Backend> backend_;
  std::vector<GoldenText> texts_;
  std::vector<GoldenContinuation> continuations_;
};

}  // namespace tandem
