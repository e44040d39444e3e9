#include "draft/recycle.h"

#include <algorithm>
#include <limits>

#include "src/sample/row_scan.h"

namespace tandem {
namespace {

constexpr TokenId kNone = -1;
// What a row's ranks are worth before anything was counted, as so many tries: the target's first choice after the same
// token was right in about half of the cases, the others fall off quickly.
constexpr double kPriorTries = 16;
constexpr std::array<double, RecycleDrafter::kSuccessors> kPrior{0.45, 0.12, 0.07, 0.05, 0.03, 0.03, 0.02, 0.02};

}  // namespace

void RecycleDrafter::forget_ranks() {
  tries_ = kPriorTries;
  for (std::size_t rank = 0; rank < hits_.size(); ++rank) hits_[rank] = kPriorTries * kPrior[rank];
}

void RecycleDrafter::reset() {
  for (Successors& successors : table_) successors.fill(kNone);
  text_.clear();
  forget_ranks();
}

std::span<const TokenId> RecycleDrafter::successors(TokenId token) const {
  if (static_cast<std::size_t>(token) >= table_.size()) return {};
  const Successors& known = table_[static_cast<std::size_t>(token)];
  return std::span(known).first(static_cast<std::size_t>(std::ranges::find(known, kNone) - known.begin()));
}

// Between two steps the context does not change; where it did, another prompt began.
void RecycleDrafter::follow(std::span<const TokenId> tokens) {
  if (std::ranges::equal(tokens, text_)) return;
  if (!text_.empty()) reset();
  text_.assign(tokens.begin(), tokens.end());
}

// The likeliest child that some node may still get.
RecycleDrafter::Candidate RecycleDrafter::best_candidate() const {
  Candidate best;
  for (int node = 0; node < tree_.size(); ++node) {
    const int rank = next_rank_[static_cast<std::size_t>(node)];
    if (rank >= static_cast<int>(successors(tree_.token(node)).size())) continue;
    const double path = path_confidence_[static_cast<std::size_t>(node)] * confidence(rank);
    if (path > best.confidence) best = {path, node, rank};
  }
  return best;
}

const TokenTree& RecycleDrafter::propose(Context& context, LengthPolicy& policy) {
  tree_.clear(context.tokens().back());
  follow(context.tokens());
  path_confidence_[0] = 1;
  next_rank_[0] = 0;
  while (tree_.size() <= kMostDrafted) {
    const Candidate child = best_candidate();
    if (child.parent < 0) break;
    const auto parent = static_cast<std::size_t>(child.parent);
    const double likely = confidence(child.rank);
    if (!policy.allow_row(
            {tree_.depth(child.parent) + 1, tree_.size(), path_confidence_[parent], likely, DraftSource::recycle})) {
      next_rank_[parent] = kSuccessors;  // what follows there is no deeper and no likelier
      continue;
    }
    const TokenId token = successors(tree_.token(child.parent))[static_cast<std::size_t>(child.rank)];
    ++next_rank_[parent];
    const auto node = static_cast<std::size_t>(
        tree_.add(child.parent, token, ChildKind::deterministic, DraftSource::recycle, static_cast<float>(likely)));
    path_confidence_[node] = child.confidence;
    next_rank_[node] = 0;
  }
  return tree_;
}

// Counts which rank the token that came had among the successors known before.
void RecycleDrafter::score(TokenId token, TokenId next) {
  const std::span<const TokenId> known = successors(token);
  if (known.empty()) return;
  tries_ += 1;
  const auto at = std::ranges::find(known, next);
  if (at != known.end()) hits_[static_cast<std::size_t>(at - known.begin())] += 1;
}

// The largest logits of a row, ties to the lowest id, by insertion: few of a row come above the least of eight.
void RecycleDrafter::record(TokenId token, std::span<const float> logits) {
  std::array<float, kSuccessors> values;
  values.fill(-std::numeric_limits<float>::infinity());
  Successors best;
  best.fill(kNone);
  const float& least = values.back();
  for (const TokenRun& run : mask_.runs()) {
    const auto begin = static_cast<std::size_t>(run.begin);
    const std::size_t end = std::min(static_cast<std::size_t>(run.end), logits.size());
    if (begin >= end) break;
    each_above(logits.subspan(begin, end - begin), least, [&](std::size_t i) {
      const float value = logits[begin + i];
      std::size_t place = kSuccessors - 1;
      for (; place > 0 && value > values[place - 1]; --place) {
        values[place] = values[place - 1];
        best[place] = best[place - 1];
      }
      values[place] = value;
      best[place] = static_cast<TokenId>(begin + i);
    });
  }
  table_[static_cast<std::size_t>(token)] = best;
}

void RecycleDrafter::observe(const Observation& observation, const Context& context) {
  const Logits& logits = observation.logits;
  if (table_.empty()) {
    table_.resize(static_cast<std::size_t>(logits.vocab));
    for (Successors& successors : table_) successors.fill(kNone);
  }
  const std::span<const int> path = observation.verdict.path();
  const std::span<const TokenId> tokens = context.tokens();
  const std::span<const TokenId> committed = tokens.last(path.size());
  for (std::size_t i = 0; i < path.size(); ++i) {
    const TokenId token = observation.tree.token(path[i]);
    score(token, committed[i]);
    record(token, logits.row(path[i]));
  }
  text_.insert(text_.end(), committed.begin(), committed.end());
}

}  // namespace tandem
