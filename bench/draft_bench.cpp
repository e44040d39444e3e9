// Seconds of a draft step over those of one row of the target, for several ways to make the draft cheaper, in turns
// within one run.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <numeric>
#include <vector>

#include "draft/head_ranking.h"
#include "kernels/cpu/yardstick.h"
#include "kernels/registry.h"
#include "src/base/error.h"
#include "src/base/stopwatch.h"
#include "src/engine/model_files.h"
#include "src/engine/session.h"

namespace tandem {
namespace {

struct Arguments {
  std::string target, draft, ranking;
  std::vector<int> head_rows{65536, 32768};
  int context = 256, rounds = 21, threads = 0;
};

// A model that decodes token by token: a row through it, and the largest logit.
class Stepper {
 public:
  Stepper(std::string name, const ModelFile& file, Backend& backend, int context, const WeightOptions& weights)
      : name_(std::move(name)),
        model_(file.spec, *file.file, backend, 512, context + 1, weights),
        cache_(model_.make_cache(context + 1, KvType::f16)),
        sampler_({.temperature = 0}, {1, 0}, usable_tokens(file)) {
    for (int i = 0; i < context; ++i) tokens_.push_back(static_cast<TokenId>(i * 7919 % 30000));
    context_.push(tokens_);
    model_.follow(tokens_);
    std::vector<Position> positions(tokens_.size());
    std::iota(positions.begin(), positions.end(), 0);
    while (cache_.size() < context) {
      const auto done = static_cast<std::size_t>(cache_.size());
      const std::size_t rows = std::min(tokens_.size() - done, std::size_t{512});
      model_.forward({std::span(tokens_).subspan(done, rows), std::span(positions).subspan(done, rows), {}, {}},
                     cache_);
    }
  }

  double step() {
    const double start = now_seconds();
    const Position position = cache_.size();
    const int row = 0;
    const Logits logits = model_.forward({{tokens_.data(), 1}, {&position, 1}, {}, {&row, 1}}, cache_);
    sampler_.distribution(logits.row(0), context_, distribution_);
    const double seconds = now_seconds() - start;
    cache_.keep_path(position, {});
    return seconds;
  }

  const std::string& name() const { return name_; }
  std::size_t bytes() const { return model_.weights().bytes_per_pass(); }
  std::vector<double> seconds;

 private:
  std::string name_;
  Transformer model_;
  KvCache cache_;
  Sampler sampler_;
  std::vector<TokenId> tokens_;
  Context context_;
  Distribution distribution_;
};

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

std::vector<std::unique_ptr<Stepper>> load(const Arguments& a, const ModelFile& target, const ModelFile& draft,
                                           Backend& backend) {
  std::vector<TokenId> ranking;
  if (!a.ranking.empty()) ranking = read_head_ranking(a.ranking, draft.spec.vocab);
  std::vector<std::unique_ptr<Stepper>> all;
  const auto add = [&](std::string name, const ModelFile& file, const WeightOptions& weights) {
    const double start = now_seconds();
    all.push_back(std::make_unique<Stepper>(std::move(name), file, backend, a.context, weights));
    fmt::print("{}: loaded and filled in {:.2f} s\n", all.back()->name(), now_seconds() - start);
  };
  add("target", target, {});
  add("draft", draft, {});
  add("draft q4_0", draft, {.quantize = Format::q4_0, .head_tokens = {}});
  for (const int rows : a.head_rows) {
    add(fmt::format("draft q4_0, {} head rows", rows), draft,
        {.quantize = Format::q4_0,
         .head_tokens = kept_head_tokens(rows, ranking, end_ids(draft.tokenizer->vocabulary()), usable_tokens(draft),
                                         draft.spec.vocab)});
  }
  return all;
}

void run(const Arguments& a) {
  const ModelFile target = open_model(a.target), draft = open_model(a.draft);
  const std::unique_ptr<ThreadPool> pool = make_pool(a.threads);
  const std::unique_ptr<Backend> backend = make_backend("auto", *pool);
  const std::vector<std::unique_ptr<Stepper>> all = load(a, target, draft, *backend);
  const double before = measure_read_bandwidth(*pool);
  for (int round = -1; round < a.rounds; ++round) {  // round -1 warms up
    for (const std::unique_ptr<Stepper>& stepper : all) {
      const double seconds = stepper->step();
      if (round >= 0) stepper->seconds.push_back(seconds);
    }
  }
  const double bandwidth = (before + measure_read_bandwidth(*pool)) / 2;
  fmt::print("plain reading {:.1f} GB/s, {} threads, {} cached tokens, {} rounds\n", bandwidth / 1e9, pool->threads(),
             a.context, a.rounds);
  fmt::print("{:<32}{:>10}{:>12}{:>14}{:>14}\n", "", "MB", "median ms", "memory ms", "over target");
  for (const std::unique_ptr<Stepper>& stepper : all) {
    fmt::print("{:<32}{:>10.1f}{:>12.2f}{:>14.2f}{:>14.3f}\n", stepper->name(),
               static_cast<double>(stepper->bytes()) / 1e6, 1e3 * median(stepper->seconds),
               1e3 * static_cast<double>(stepper->bytes()) / bandwidth,
               median(stepper->seconds) / median(all.front()->seconds));
  }
}

}  // namespace
}  // namespace tandem

int main(int argc, char** argv) {
  tandem::Arguments a;
  CLI::App program("Seconds of a draft step over those of one row of the target");
  program.add_option("--target", a.target, "GGUF file")->required();
  program.add_option("--draft", a.draft, "GGUF file of the same vocabulary")->required();
  program.add_option("--ranking", a.ranking, "File as for draft.head_ranking");
  program.add_option("--head-rows", a.head_rows, "Rows of the draft's head to try")->delimiter(',');
  program.add_option("--context", a.context, "Cached tokens")->check(CLI::Range(1, 4096));
  program.add_option("--rounds", a.rounds)->check(CLI::Range(1, 1000));
  program.add_option("--threads", a.threads)->check(CLI::Range(0, 256));
  CLI11_PARSE(program, argc, argv);
  try {
    tandem::run(a);
  } catch (const std::exception& error) {
    fmt::print(stderr, "draft_bench: {}\n", error.what());
    return 1;
  }
}
