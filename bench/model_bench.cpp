// Passes of a real model: decoding a token, the target's side of a step over a proposal, and prefill. See README.md.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <memory>
#include <numeric>
#include <vector>

#include "bench/model_argument.h"
#include "kernels/cpu/yardstick.h"
#include "kernels/registry.h"
#include "src/engine/model_files.h"
#include "src/engine/session.h"
#include "verify/verifier.h"

namespace tandem {
namespace {

constexpr int kPositions = 4096, kPrefill = 512;

// A loaded model and a cache that is filled as a case wants it.
class Loaded {
 public:
  explicit Loaded(const std::string& path)
      : file_(open_model(path)),
        pool_(make_pool(0)),
        backend_(make_backend("auto", *pool_)),
        model_(file_.spec, *file_.file, *backend_, kPrefill, kPositions),
        cache_(model_.make_cache(model_.max_positions(), KvType::f16)),
        positions_(static_cast<std::size_t>(model_.max_positions())),
        sampler_({.temperature = 0}, {1, 0}, usable_tokens(file_)) {
    std::iota(positions_.begin(), positions_.end(), 0);
  }

  const ModelFile& file() const { return file_; }
  const Backend& backend() const { return *backend_; }
  ThreadPool& pool() { return *pool_; }
  std::size_t weight_bytes() const { return model_.weights().bytes_per_pass(); }

  // Leaves exactly `tokens` tokens in cache and context.
  void fill(int tokens) {
    [[maybe_unused]] const int kept = cache_.truncate(std::min(cache_.size(), tokens));
    while (cache_.size() < tokens) pass(std::min(kPrefill, tokens - cache_.size()), 0);
    context_.clear();
    for (int i = 0; i <= tokens; ++i) context_.push(token(i));  // the pending one too
  }
  void truncate(int tokens) { cache_.keep_path(tokens, {}); }

  // Rows of any ids behind the cache: time does not depend on what the tokens say.
  Logits pass(int rows, int logits_rows) {
    std::vector<TokenId> tokens(static_cast<std::size_t>(rows));
    for (int i = 0; i < rows; ++i) tokens[static_cast<std::size_t>(i)] = token(cache_.size() + i);
    std::vector<int> wanted(static_cast<std::size_t>(logits_rows));
    std::iota(wanted.begin(), wanted.end(), rows - logits_rows);
    return model_.forward(
        {tokens, std::span(positions_).subspan(static_cast<std::size_t>(cache_.size()), tokens.size()), {}, wanted},
        cache_);
  }

  // Forward, verification and rollback of a chain behind the pending token.
  void step(const TokenTree& chain, Verifier& verifier) {
    const int base = cache_.size(), committed = context_.size();
    const Logits logits = pass(chain.size(), chain.size());
    const Verdict verdict = verifier.verify(chain, logits, sampler_, context_);
    cache_.keep_path(base, verdict.path());
    context_.pop(context_.size() - committed);
    cache_.keep_path(base, {});
  }
  TokenTree chain(int nodes) const {
    TokenTree tree(context_.tokens().back());
    for (int i = 1; i < nodes; ++i) {
      tree.add(i - 1, token(context_.size() + i), ChildKind::deterministic, DraftSource::other);
    }
    return tree;
  }

 private:
  TokenId token(int i) const { return static_cast<TokenId>(std::int64_t{i} * 7919 % file_.spec.vocab); }

  ModelFile file_;
  std::unique_ptr<ThreadPool> pool_;
  std::unique_ptr<Backend> backend_;
  Transformer model_;
  KvCache cache_;
  std::vector<Position> positions_;
  Sampler sampler_;
  Context context_;
};

void count(benchmark::State& state, const Loaded& model, int rows) {
  using benchmark::Counter;
  state.counters["rows/s"] = Counter(rows, Counter::kIsIterationInvariantRate);
  state.counters["weights_GB/s"] =
      Counter(static_cast<double>(model.weight_bytes()) / 1e9, Counter::kIsIterationInvariantRate);
}

void decode(benchmark::State& state, Loaded& model) {
  const int cached = static_cast<int>(state.range(0));
  model.fill(cached);
  for (auto _ : state) {
    benchmark::DoNotOptimize(model.pass(1, 1).row(0).data());
    model.truncate(cached);
  }
  count(state, model, 1);
}

void verify(benchmark::State& state, Loaded& model) {
  const int rows = static_cast<int>(state.range(1));
  model.fill(static_cast<int>(state.range(0)));
  const std::unique_ptr<Verifier> rule = make_verifier("rejection");
  const TokenTree chain = model.chain(rows);
  for (auto _ : state) model.step(chain, *rule);
  count(state, model, rows);
}

void prefill(benchmark::State& state, Loaded& model) {
  model.fill(0);
  for (auto _ : state) {
    benchmark::DoNotOptimize(model.pass(kPrefill, 1).row(0).data());
    model.truncate(0);
  }
  count(state, model, kPrefill);
}

void register_all(Loaded& model) {
  const int deep = std::min(kPositions, model.file().spec.context) - kMaxTreeNodes;
  benchmark::RegisterBenchmark("decode", [&](benchmark::State& state) { decode(state, model); })
      ->Arg(256)
      ->Arg(deep)
      ->Unit(benchmark::kMillisecond)
      ->UseRealTime();
  auto* steps = benchmark::RegisterBenchmark("verify", [&](benchmark::State& state) { verify(state, model); });
  for (const int rows : {1, 2, 4, 6, 8, 16}) steps->Args({256, rows});
  steps->Unit(benchmark::kMillisecond)->UseRealTime();
  benchmark::RegisterBenchmark("prefill_512", [&](benchmark::State& state) { prefill(state, model); })
      ->Unit(benchmark::kMillisecond)
      ->UseRealTime();
}

void run(int argc, char** argv) {
  Loaded model(take_model_argument(argc, argv));
  benchmark::AddCustomContext("model", model.file().file->name());
  benchmark::AddCustomContext("backend", std::string(model.backend().name()));
  benchmark::AddCustomContext("threads", std::to_string(model.backend().threads()));
  benchmark::AddCustomContext("read_GB_per_second", std::to_string(measure_read_bandwidth(model.pool()) / 1e9));
  register_all(model);
  benchmark::RunSpecifiedBenchmarks();
}

}  // namespace
}  // namespace tandem

int main(int argc, char** argv) {
  try {
    tandem::run(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "model_bench: {}\n", error.what());
    return 1;
  }
}
