#include "draft/recycle.h"

#include <algorithm>
#include <limits>

#include "src/sample/ranked.h"
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
  known_ = 0;
  forget_ranks();
}

std::span<const TokenId> RecycleDrafter::successors(TokenId token) const {
  if (static_cast<std::size_t>(token) >= table_.size()) return {};
  const Successors& known = table_[static_cast<std::size_t>(token)];
  return std::span(known).first(static_cast<std::size_t>(std::ranges::find(known, kNone) - known.begin()));
}

RecycleDrafter::Successors& RecycleDrafter::entry(TokenId token) {
  const auto place = static_cast<std::size_t>(token);
  if (place >= table_.size()) {
    Successors none;
    none.fill(kNone);
    table_.resize(place + 1, none);
  }
  return table_[place];
}

// `next` becomes the first successor of `token`, and the one that it displaces the last.
void RecycleDrafter::follow(TokenId token, TokenId next) {
  Successors& known = entry(token);
  auto end = std::ranges::find(known, next);
  if (end == known.end()) --end;
  std::move_backward(known.begin(), end, end + 1);
  known.front() = next;
}

// Between two steps the context does not change; where it did, another prompt began.
void RecycleDrafter::learn_text(std::span<const TokenId> tokens) {
  if (tokens.size() == known_) return;
  if (known_ > 0) reset();
  known_ = tokens.size();
  entry(*std::ranges::max_element(tokens));  // the whole table at once
  for (std::size_t i = 1; i < tokens.size(); ++i) {
    if (mask_.allows(tokens[i])) follow(tokens[i - 1], tokens[i]);
  }
}

// The likeliest child that some node may still get.
RecycleDrafter::Candidate RecycleDrafter::best_candidate(const TokenTree& tree) const {
  Candidate best;
  for (int node = 0; node < tree.size(); ++node) {
    const int rank = next_rank_[static_cast<std::size_t>(node)];
    if (rank >= static_cast<int>(successors(tree.token(node)).size())) continue;
    const double path = path_confidence_[static_cast<std::size_t>(node)] * confidence(rank);
    if (path > best.confidence) best = {path, node, rank};
  }
  return best;
}

void RecycleDrafter::read(const Context& context) {
  admission_.begin(context);
  learn_text(context.tokens());
}

void RecycleDrafter::grow(TokenTree& tree, Context& context, LengthPolicy& policy) {
  read(context);
  extend(tree, policy);
}

void RecycleDrafter::extend(TokenTree& tree, LengthPolicy& policy) {
  const int begun = tree.size(), root = tree.first_leaf();
  next_rank_.fill(kSuccessors);
  path_confidence_[static_cast<std::size_t>(root)] = tree.path_confidence(root);
  next_rank_[static_cast<std::size_t>(root)] = 0;
  while (!tree.full() && tree.size() < begun + kMostDrafted) {
    const Candidate child = best_candidate(tree);
    if (child.parent < 0) break;
    const auto parent = static_cast<std::size_t>(child.parent);
    const TokenId token = successors(tree.token(child.parent))[static_cast<std::size_t>(child.rank)];
    if (!admission_.admits(tree, child.parent, token)) {
      ++next_rank_[parent];
      continue;
    }
    const double likely = confidence(child.rank);
    double left = 1;  // chance that it comes to this child: none of the better ones was it
    for (int rank = 0; rank < child.rank; ++rank) left -= confidence(rank);
    if (!policy.allow_row({tree.depth(child.parent) + 1, tree.size(), path_confidence_[parent],
                           std::min(1.0, likely / left), DraftSource::recycle, child.parent})) {
      next_rank_[parent] = kSuccessors;  // what follows there is no deeper and no likelier
      continue;
    }
    ++next_rank_[parent];
    const auto node = static_cast<std::size_t>(
        tree.add(child.parent, token, ChildKind::deterministic, DraftSource::recycle, static_cast<float>(likely)));
    path_confidence_[node] = child.confidence;
    next_rank_[node] = 0;
  }
}

// Counts which rank the token that came had among the successors known before.
void RecycleDrafter::score(TokenId token, TokenId next) {
  const std::span<const TokenId> known = successors(token);
  if (known.empty()) return;
  tries_ += 1;
  const auto at = std::ranges::find(known, next);
  if (at != known.end()) hits_[static_cast<std::size_t>(at - known.begin())] += 1;
}

// The largest logits of a row, ties to the lowest id: few of a row come above the least of eight.
void RecycleDrafter::record(TokenId token, std::span<const float> logits) {
  std::array<RankedToken, kSuccessors> best;
  int count = 0;
  float bar = -std::numeric_limits<float>::infinity();
  for (const TokenRun& run : mask_.runs()) {
    const auto begin = static_cast<std::size_t>(run.begin);
    const std::size_t end = std::min(static_cast<std::size_t>(run.end), logits.size());
    if (begin >= end) break;
    each_above(logits.subspan(begin, end - begin), bar, [&](std::size_t i) {
      insert_ranked(std::span<RankedToken>(best), count, {static_cast<TokenId>(begin + i), logits[begin + i]},
                    [](const RankedToken& a, const RankedToken& b) { return a.value > b.value; });
      if (count == kSuccessors) bar = static_cast<float>(best.back().value);
    });
  }
  Successors& known = entry(token);
  known.fill(kNone);
  for (int i = 0; i < count; ++i) known[static_cast<std::size_t>(i)] = best[static_cast<std::size_t>(i)].token;
}

void RecycleDrafter::observe(const Observation& observation, const Context& context) {
  const Logits& logits = observation.logits;
  entry(static_cast<TokenId>(logits.vocab) - 1);
  const std::span<const int> path = observation.verdict.path();
  const std::span<const TokenId> committed = context.tokens().last(path.size());
  for (std::size_t i = 0; i < path.size(); ++i) {
    const TokenId token = observation.tree.token(path[i]);
    score(token, committed[i]);
    record(token, logits.row(path[i]));
  }
  // The row of a node off the path comes from another text than this one: better than nothing, and no more.
  for (int node = 1; node < observation.tree.size(); ++node) {
    const TokenId token = observation.tree.token(node);
    if (successors(token).empty()) record(token, logits.row(node));
  }
  known_ += path.size();
}

}  // namespace tandem
