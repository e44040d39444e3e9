// Compares forward passes of real models with tests/golden/logits.jsonl, made by llama.cpp from F32 weights.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/backend.h"
#include "src/engine/model_files.h"
#include "src/engine/scoring.h"

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

// How far a text may lie from its golden rows: each token's log-probability, their mean absolute difference, and the
// logits and log-sum-exp of the last row.
struct GoldenBounds {
  double token, mean, logit;
};

// One model's golden rows, and the model on a backend.
class GoldenModel {
 public:
  // `name` as in the rows; `backend` as make_backend takes it.
  GoldenModel(std::string_view name, std::string_view file, std::string_view backend);

  // Every token of every text, and the last row's top 20, within the bounds that `bounds_of` gives for the text and the
  // scores of this backend; argmax equal unless the golden margin is below that of a token.
  void expect_equal(const std::function<GoldenBounds(const GoldenText&, const Scores&)>& bounds_of);
  void expect_equal(double tolerance);

  const ModelFile& model() const { return model_; }
  Backend& backend() { return *backend_; }

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
