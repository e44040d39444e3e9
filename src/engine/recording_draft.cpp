#include "src/engine/recording_draft.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "src/base/stopwatch.h"
#include "src/sample/logprobs.h"

namespace tandem {
namespace {

using Entry = RecordedRow::Entry;
constexpr std::array kTimedRows{2, 3, 4, 8, 16};

// Keeps the largest of what it is shown.
class Best {
 public:
  void show(Entry entry) {
    if (!(entry.value > -std::numeric_limits<float>::infinity())) return;
    if (heap_.size() == kRecordedTokens) {
      if (!(entry.value > heap_.front().value)) return;
      std::pop_heap(heap_.begin(), heap_.end(), smaller_first);
      heap_.pop_back();
    }
    heap_.push_back(entry);
    std::push_heap(heap_.begin(), heap_.end(), smaller_first);
  }
  std::vector<Entry> take() { return std::move(heap_); }

 private:
  static bool smaller_first(const Entry& a, const Entry& b) { return a.value > b.value; }
  std::vector<Entry> heap_;
};

void add_wanted(std::vector<Entry>& entries, Entry entry) {
  const auto same = [&](const Entry& other) { return other.token == entry.token; };
  if (entry.value > -std::numeric_limits<float>::infinity() && std::ranges::none_of(entries, same)) {
    entries.push_back(entry);
  }
}

// `total`: log of the sum of exponentials of all values of the row.
RecordedRow finished(std::vector<Entry> entries, double total) {
  std::ranges::sort(entries, {}, &Entry::token);
  double listed = 0;
  for (const Entry& entry : entries) listed += std::exp(entry.value - total);
  constexpr double kRounding = 1e-12;
  const double rest = 1 - listed;
  return {std::move(entries),
          rest > kRounding ? static_cast<float>(total + std::log(rest)) : -std::numeric_limits<float>::infinity()};
}

}  // namespace

RecordedRow recorded_row(std::span<const float> logits, const Distribution& chosen, bool greedy,
                         const TokenMask& usable, std::span<const TokenId> wanted) {
  Best best;
  const auto vocab = static_cast<TokenId>(logits.size());
  if (greedy) {
    for (const TokenRun& run : usable.runs()) {
      for (TokenId token = run.begin; token < std::min(run.end, vocab); ++token) best.show({token, logits[token]});
    }
  } else {
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      best.show({chosen.tokens[i], static_cast<float>(std::log(chosen.probabilities[i]))});
    }
  }
  std::vector<Entry> entries = best.take();
  for (const TokenId token : wanted) {
    if (token >= vocab) continue;
    add_wanted(entries, {token, greedy ? logits[token] : static_cast<float>(std::log(chosen[token]))});
  }
  return finished(std::move(entries), greedy ? log_sum_exp(logits) : 0);
}

DraftRecorder::DraftRecorder(LanguageModel& model, KvType kv_type, Sampler sampler, int longest)
    : model_(model),
      sampler_(std::move(sampler)),
      longest_(longest),
      cache_(model.make_cache(model.max_positions(), kv_type)),
      positions_(static_cast<std::size_t>(model.max_positions())) {
  std::iota(positions_.begin(), positions_.end(), 0);
  for (int i = 0; i < kTimedRows.back(); ++i) any_.push_back(i * 7919 % model.spec().vocab);
}

// Runs tokens behind those of the cache, in chunks; logits of the last.
std::span<const float> DraftRecorder::feed(std::span<const TokenId> tokens) {
  for (std::size_t done = 0;;) {
    const std::size_t rows = std::min(tokens.size() - done, static_cast<std::size_t>(model_.max_rows()));
    const std::array<int, 1> last_row{static_cast<int>(rows) - 1};
    const bool last = done + rows == tokens.size();
    const auto base = static_cast<std::size_t>(cache_.size());
    const Logits logits = model_.forward({.tokens = tokens.subspan(done, rows),
                                          .positions = std::span<const Position>(positions_).subspan(base, rows),
                                          .ancestors = {},
                                          .logits_rows = std::span<const int>(last_row).first(last ? 1 : 0)},
                                         cache_);
    done += rows;
    if (last) return logits.row(0);
  }
}

void DraftRecorder::begin(std::span<const TokenId> prompt, RecordedAnswer& answer) {
  cache_.clear();
  answer.draft.emplace_back();  // nothing is drafted for the first token
  answer.branches.emplace_back();
  path_.clear();
  path_.push(prompt);
  if (static_cast<int>(prompt.size()) > model_.max_positions()) return;
  const ScopedSeconds timer(answer.times.draft_prompt);
  feed(prompt);
}

// The token that a greedy draft goes on with, left in distribution_ with all others.
TokenId DraftRecorder::best(const Context& context, std::span<const float> logits) {
  sampler_.distribution(logits, context, distribution_);
  if (sampler_.greedy()) log_sum_exp(logits);  // a drafter asks how sure the model is
  const auto& p = distribution_.probabilities;
  return distribution_.tokens[static_cast<std::size_t>(std::max_element(p.begin(), p.end()) - p.begin())];
}

RecordedRow DraftRecorder::row(std::span<const float> logits, TokenId wanted) const {
  std::vector<TokenId> needed{wanted, distribution_.tokens.front()};
  for (const auto& [token, bias] : sampler_.options().logit_bias) needed.push_back(token);
  return recorded_row(logits, distribution_, sampler_.greedy(), sampler_.mask(), needed);
}

void DraftRecorder::note(const Context& before, TokenId committed, RecordedAnswer& answer) {
  answer.draft.emplace_back();
  answer.branches.emplace_back();
  path_.push(before.tokens().back());
  if (before.size() > model_.max_positions()) return;
  const double start = now_seconds();
  model_.follow(before.tokens());
  const std::span<const float> logits = feed(before.tokens().last(1));
  const TokenId token = best(before, logits);
  answer.times.draft_steps.push_back(static_cast<float>(now_seconds() - start));
  answer.draft.back() = row(logits, committed);
  if (token == committed) return;
  const int size = cache_.size();
  answer.branches.back() = branch(path_, token, answer);
  cache_.keep_path(size, {});
}

RecordedBranch DraftRecorder::branch(Context& context, TokenId wrong, RecordedAnswer& answer) {
  RecordedBranch branch;
  const int committed = context.size();
  for (TokenId token = wrong; static_cast<int>(branch.tokens.size()) < longest_ - 1;) {
    if (context.size() == model_.max_positions()) break;
    context.push(token);
    branch.tokens.push_back(token);
    const double start = now_seconds();
    const std::span<const float> logits = feed(context.tokens().last(1));
    token = best(context, logits);
    answer.times.draft_steps.push_back(static_cast<float>(now_seconds() - start));
    branch.rows.push_back(row(logits, token));
  }
  context.pop(context.size() - committed);
  return branch;
}

void DraftRecorder::time_passes(RecordedAnswer& answer) {
  const int size = cache_.size();
  const auto time = [&](int rows) {
    const double start = now_seconds();
    feed(std::span<const TokenId>(any_).first(static_cast<std::size_t>(rows)));
    const double seconds = now_seconds() - start;
    cache_.keep_path(size, {});
    return static_cast<float>(seconds);
  };
  for (const int rows : kTimedRows) {
    if (size + rows > model_.max_positions()) return;
    const float single = time(1);
    answer.times.draft_passes.push_back({rows, time(rows), single});
  }
}

}  // namespace tandem
