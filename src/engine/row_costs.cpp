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
      cache.truncate(context);
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

}  // namespace tandem
