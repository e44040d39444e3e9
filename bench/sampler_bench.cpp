// Times the sampler and the verification of a chain at the vocabulary of Qwen2.5, on rows shaped like a model's.
#include <benchmark/benchmark.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "src/sample/sampler.h"
#include "verify/verifier.h"

namespace tandem {
namespace {

constexpr int kVocabulary = 151936;
constexpr int kRows = 5;  // a chain of four drafts and the pending token

// Normal noise of deviation 2.5 around 0, as measured on Qwen2.5, with a head of some forty likely tokens above it.
std::vector<float> model_like_rows() {
  std::vector<float> logits(static_cast<std::size_t>(kRows) * kVocabulary);
  const Noise noise{7, 0};
  for (int row = 0; row < kRows; ++row) {
    for (TokenId token = 0; token < kVocabulary; token += 2) {
      const auto words = noise.token_words(static_cast<std::uint32_t>(row), 2 * token);  // Box-Muller
      const double radius = 2.5 * std::sqrt(-2 * std::log(uniform_from_word(words[0])));
      const double angle = 2 * 3.14159265358979 * uniform_from_word(words[1]);
      float* pair = &logits[static_cast<std::size_t>(row) * kVocabulary + token];
      pair[0] = static_cast<float>(radius * std::cos(angle));
      pair[1] = static_cast<float>(radius * std::sin(angle));
    }
    for (int rank = 0; rank < 40; ++rank) {
      const auto token = static_cast<std::size_t>((rank * 7919 + row * 104729) % kVocabulary);
      logits[static_cast<std::size_t>(row) * kVocabulary + token] = 22.0f - 3.0f * std::log1p(static_cast<float>(rank));
    }
  }
  return logits;
}

Logits rows() {
  static const std::vector<float> data = model_like_rows();
  return {data, kVocabulary};
}

Context long_context() {
  Context context;
  for (int i = 0; i < 4096; ++i) context.push((i * 7919 + i % 97) % kVocabulary);
  return context;
}

SamplingOptions with_penalties(int window) {
  SamplingOptions options;
  options.repetition_penalty = 1.1;
  options.presence_penalty = 0.2;
  options.frequency_penalty = 0.1;
  options.penalty_window = window;
  return options;
}

SamplingOptions biased() {
  SamplingOptions options;
  for (int i = 0; i < 100; ++i) options.logit_bias.emplace_back(1517 * i, i % 2 ? 3 : -3);
  return options;
}

std::vector<std::pair<std::string, SamplingOptions>> chains() {
  SamplingOptions greedy_penalties = with_penalties(64);
  greedy_penalties.temperature = 0;
  return {{"greedy", {0, 40, 0.95, 0}},
          {"default_k40_p95", {}},
          {"temperature_only", {0.7, 0, 1, 0}},
          {"top_p95_only", {0.7, 0, 0.95, 0}},
          {"min_p05_only", {0.7, 0, 1, 0.05}},
          {"default_penalties_64", with_penalties(64)},
          {"default_penalties_4096", with_penalties(4096)},
          {"default_bias_100", biased()},
          {"greedy_penalties_64", greedy_penalties}};
}

// One row: the distribution and the draw of plain decoding.
void one_row(benchmark::State& state, const SamplingOptions& options) {
  Sampler sampler(options, Noise{1, 0}, {});
  const Context context = long_context();
  const Logits logits = rows();
  Distribution p;
  std::uint32_t position = 0;
  for (auto _ : state) {
    sampler.distribution(logits.row(static_cast<int>(position % kRows)), context, p);
    benchmark::DoNotOptimize(sampler.draw_with_noise(p, position++));
  }
}

// Verification of a chain of four sampled drafts, all accepted: the most that a step can cost.
void verify_chain(benchmark::State& state, const SamplingOptions& options) {
  Sampler sampler(options, Noise{1, 0}, {});
  Context context = long_context();
  const Logits logits = rows();
  const auto verifier = make_verifier("rejection");
  TokenTree tree(context.tokens().back());
  const int committed = context.size();
  for (int node = 0; node + 1 < kRows; ++node) {  // draft and target agree, so that every row is visited
    sampler.distribution(logits.row(node), context, tree.set_proposal(node));
    const auto draw = [&](const Distribution& left) {
      return sampler.draw(left, context.position(), node + 1, DrawPurpose::draft);
    };
    context.push(tree.token(tree.draw_child(node, DraftSource::model, draw)));
  }
  context.pop(context.size() - committed);
  for (auto _ : state) {
    const Verdict verdict = verifier->verify(tree, logits, sampler, context);
    benchmark::DoNotOptimize(verdict.next);
    if (context.size() - committed != kRows) state.SkipWithError("a draft was rejected");
    context.pop(context.size() - committed);
  }
}

void register_all() {
  for (const auto& [name, options] : chains()) {
    benchmark::RegisterBenchmark(("row/" + name).c_str(), [options = options](benchmark::State& state) {
      one_row(state, options);
    })->Unit(benchmark::kMicrosecond);
    benchmark::RegisterBenchmark(("verify_5_rows/" + name).c_str(), [options = options](benchmark::State& state) {
      verify_chain(state, options);
    })->Unit(benchmark::kMicrosecond);
  }
}

}  // namespace
}  // namespace tandem

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  tandem::register_all();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
