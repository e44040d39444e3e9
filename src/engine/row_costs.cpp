#include "src/engine/row_costs.h"

#include <algorithm>
#include <numeric>

#include "src/base/error.h"
#include "src/base/stopwatch.h"

namespace tandem {

std::vector<RowCost> measure_row_costs(Transformer& model, const std::vector<int>& rows, int context, int repeats,
                                       const std::function<void(int, int)>& progress) {
  const int most = *std::max_element(rows.begin(), rows.end());
  const int limit = std::min(model.max_positions(), model.spec().context);
  if (context < 0 || context + most > limit) {
    fail(ErrorKind::input, "context {} and {} rows: expected at most {} together, the context of the model", context,
         most, limit);
  }
  KvCache cache = model.make_cache(context + most, model.backend().preferred_kv_type());
  // Any ids do: time does not depend on what the tokens say.
  std::vector<TokenId> tokens(std::max(most, model.max_rows()));
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<TokenId>(i * 7919 % model.spec().vocab);
  std::vector<Position> positions(tokens.size());
  std::vector<int> wanted(tokens.size());
  std::iota(wanted.begin(), wanted.end(), 0);
  const auto pass = [&](int count, int with_logits) {
    std::iota(positions.begin(), positions.begin() + count, cache.size());
    const auto n = static_cast<std::size_t>(count);
    const auto last = std::span(wanted).first(n).last(static_cast<std::size_t>(with_logits));
    model.forward({std::span(tokens).first(n), std::span(positions).first(n), {}, last}, cache);
  };
  while (cache.size() < context) pass(std::min(model.max_rows(), context - cache.size()), 0);

  std::vector<std::vector<double>> seconds(rows.size());
  for (int repeat = -1; repeat < repeats; ++repeat) {  // round -1 warms up
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const double start = now_seconds();
      pass(rows[i], logits_rows(rows[i]));
      if (repeat >= 0) seconds[i].push_back(now_seconds() - start);
      cache.keep_path(context, {});
      if (progress)
        progress((repeat + 1) * static_cast<int>(rows.size()) + static_cast<int>(i),
                 (repeats + 1) * static_cast<int>(rows.size()));
    }
  }
  std::vector<RowCost> costs;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::sort(seconds[i].begin(), seconds[i].end());
    costs.push_back({rows[i], seconds[i][seconds[i].size() / 2], seconds[i].front()});
  }
  return costs;
}

std::optional<double> Yardstick::memory() const {
  if (!device) return reading;
  return device->bytes_per_second > 0 ? std::optional(device->bytes_per_second) : std::nullopt;
}

std::optional<double> Yardstick::memory_seconds(std::size_t bytes) const {
  const std::optional<double> rate = memory();
  return rate ? std::optional(static_cast<double>(bytes) / *rate) : std::nullopt;
}

std::optional<double> Yardstick::seconds(std::size_t bytes, double macs) const {
  const std::optional<double> read = memory_seconds(bytes);
  return read && multiplies ? std::max(*read, macs / (kReachablePeak * *multiplies)) : read;
}

namespace {

constexpr int kFewTokens = 16;

// A pass over `count` rows of any ids: time does not depend on what the tokens say.
void pass(Transformer& model, KvCache& cache, int count) {
  std::vector<TokenId> tokens(count, 1);
  std::vector<Position> positions(count);
  std::iota(positions.begin(), positions.end(), cache.size());
  const int last = count - 1;
  model.forward({tokens, positions, {}, {&last, 1}}, cache);
}

double seconds_of_one_row(Transformer& model, KvCache& cache) {
  const int size = cache.size();
  const double start = now_seconds();
  pass(model, cache, 1);
  const double seconds = now_seconds() - start;
  cache.keep_path(size, {});
  return seconds;
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

}  // namespace

std::vector<DepthCost> measure_depth_costs(Transformer& model, int cached, const std::vector<KvType>& types,
                                           int repeats) {
  const int limit = std::min(model.max_positions(), model.spec().context);
  if (cached <= kFewTokens || cached >= limit) {
    fail(ErrorKind::input, "cached tokens: expected {}..{}, got {}", kFewTokens + 1, limit - 1, cached);
  }
  std::vector<KvCache> caches;
  for (const KvType type : types) {
    for (const int depth : {kFewTokens, cached}) {
      caches.push_back(model.make_cache(depth + 1, type));
      KvCache& cache = caches.back();
      while (cache.size() < depth) pass(model, cache, std::min(model.max_rows(), depth - cache.size()));
    }
  }
  std::vector<std::vector<double>> seconds(caches.size());
  for (int repeat = 0; repeat < repeats; ++repeat) {
    for (std::size_t i = 0; i < caches.size(); ++i) seconds[i].push_back(seconds_of_one_row(model, caches[i]));
  }
  std::vector<DepthCost> costs;
  for (std::size_t i = 0; i < types.size(); ++i) {
    costs.push_back({types[i], median(seconds[2 * i]), median(seconds[2 * i + 1])});
  }
  return costs;
}

}  // namespace tandem
