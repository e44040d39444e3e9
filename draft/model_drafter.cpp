#include "draft/model_drafter.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "src/base/error.h"
#include "src/sample/logprobs.h"
#include "src/sample/row_scan.h"

namespace tandem {
namespace {

constexpr int kReadAfresh = 32;  // last tokens that a draft reads which skips what is unread before

// A row of logits must leave something to draw. Tokens of the text may get rows too, but a text need not have any.
void require_drawable(std::span<const TokenId> head_tokens, const SamplingOptions& sampling, const TokenMask& mask) {
  if (head_tokens.empty()) return;  // all rows are there
  const auto banned = [&](TokenId token) {
    return std::ranges::any_of(sampling.logit_bias, [token](const auto& entry) {
      return entry.first == token && entry.second == -std::numeric_limits<double>::infinity();
    });
  };
  if (std::ranges::any_of(head_tokens, [&](TokenId token) { return mask.allows(token) && !banned(token); })) return;
  fail(ErrorKind::config, "draft.head_rows: none of the {} rows kept is of a token that may be drawn; keep more",
       head_tokens.size());
}

}  // namespace

ModelDrafter::ModelDrafter(LanguageModel& model, int context, KvType kv_type, SamplingOptions sampling, Noise noise,
                           TokenMask mask, DraftDraw draw, std::shared_ptr<Constraint> constraint)
    : model_(model),
      draw_(draw),
      admission_(constraint),
      sampler_(std::move(sampling), noise, std::move(mask), std::move(constraint)),
      cache_(model.make_cache(context, kv_type)),
      room_(std::min(context, model.max_positions())),
      positions_(static_cast<std::size_t>(room_)) {
  require_drawable(model.head_tokens(), sampler_.options(), sampler_.mask());
  const int candidates = sampler_.candidates(model.spec().vocab);
  if (candidates > 0) picking_ = sampler_.picking();
  if (picking_) {
    usable_ = sampler_.mask().bits(model.spec().vocab);
    picking_->usable = usable_;
    picking_->candidates = candidates;
  }
  cached_.reserve(positions_.size());
  std::iota(positions_.begin(), positions_.end(), 0);
}

void ModelDrafter::reset() {
  cache_.clear();
  cached_.clear();
  skipped_ = 0;
  trial_known_ = false;
}

std::string ModelDrafter::take_warning() { return std::exchange(warning_, {}); }

DraftQuestion ModelDrafter::first(const TokenTree& tree, Context& context) {
  const int node = tree.first_leaf();
  return {tree.depth(node) + 1,
          tree.size(),
          tree.path_confidence(node),
          -1,
          DraftSource::model,
          node,
          unread(context.tokens()) + tree.depth(node)};
}

DraftQuestion ModelDrafter::question(const TokenTree& tree, int node) const {
  int siblings = 0;
  for (int child = tree.next_child(node, node); child >= 0; child = tree.next_child(node, child)) ++siblings;
  return {tree.depth(node) + 1, tree.size(), branch(node).path, -1, DraftSource::model, node, 1, siblings};
}

void ModelDrafter::grow(TokenTree& tree, Context& context, LengthPolicy& policy) {
  if (!can_draft(context.tokens())) return;
  const Pushed pushed(context);
  const std::uint32_t start = context.position();
  admission_.begin(context);
  begin_growing(tree);
  while (!tree.full()) {
    const int node = most_promising(tree.size());
    if (node < 0) return;
    Branch& chosen = branch(node);
    if (!chosen.known) {
      if (open(tree, node, policy)) continue;
      chosen.step_open = spend_step(tree, node, context, policy);
    } else {
      chosen.row_open = add_row(tree, node, start, policy);
    }
  }
}

// Nodes of other sources are as probable as these said.
void ModelDrafter::begin_growing(const TokenTree& tree) {
  branch(0) = {};
  for (int node = 1; node < tree.size(); ++node) {
    Branch& parent = branch(tree.parent(node));
    const double confidence = tree.confidence(node);
    branch(node) = {};
    branch(node).path = parent.path * parent.left * confidence;
    parent.left *= 1 - confidence;
  }
}

// The most that the path to a new child of this node can be worth, 0 when it gets none.
double ModelDrafter::promise(int node) const {
  const Branch& at = branch(node);
  if (!at.known) return at.step_open ? at.path * at.left : 0;
  return at.row_open ? at.path * at.left * at.next : 0;
}

// Best-first: no node that is left out is likelier than one that is taken, whatever the budget (algorithms.md section
// 4; "sum of path probabilities" as in OPT-Tree and EAGLE-2).
int ModelDrafter::most_promising(int nodes) const {
  int best = -1;
  double most = 0;
  for (int node = 0; node < nodes; ++node) {
    if (promise(node) > most) most = promise(node), best = node;
  }
  return best;
}

// Gives the node the child that a constraint leaves, for which no draft step is needed; false when there is none.
bool ModelDrafter::open(TokenTree& tree, int node, LengthPolicy& policy) {
  Branch& at = branch(node);
  if (std::exchange(at.opened, true)) return false;
  const int child = admission_.add_certain(tree, node, policy);
  if (child < 0) return false;
  const double confidence = tree.confidence(child);
  branch(child) = {};
  branch(child).path = at.path * at.left * confidence;
  at.left *= 1 - confidence;
  return true;
}

// Runs the draft on the path to `node`; false when policy or room forbid it.
bool ModelDrafter::spend_step(TokenTree& tree, int node, Context& context, LengthPolicy& policy) {
  if (admission_.complete(tree, node)) return false;
  const Pushed pushed(context);
  for (int i = 1; i <= node; ++i) {
    if (tree.ancestors(node) >> i & 1) context.push(tree.token(i));
  }
  if (context.size() > room_ || !allow_step(question(tree, node), context.tokens(), policy)) return false;
  const std::span<const TokenId> tokens = context.tokens();
  forget_differences(tokens);
  model_.follow(tokens);
  learn(tree, node, feed(tokens), context);
  return true;
}

// Once a prompt, whatever the cache holds of it, so that what was read before decides nothing.
void ModelDrafter::try_out(DraftQuestion question, std::span<const TokenId> committed, LengthPolicy& policy) {
  if (tried_) return;
  tried_ = committed.size() <= kTrialTokens;
  const bool known = trial_known_ && shared(committed) >= kTrialTokens;
  question.partial = true;
  if (tried_ || !policy.allow_trial(question, known ? 0 : kTrialTokens)) return;
  tried_ = true;
  if (!known) read_trial(committed);
  for (const Foretold& token : trial_) policy.observe_trial(DraftSource::model, token.confidence, token.came);
}

void ModelDrafter::read_trial(std::span<const TokenId> tokens) {
  reset();
  model_.follow(tokens);
  std::array<int, std::tuple_size_v<decltype(trial_)>> rows;
  std::iota(rows.begin(), rows.end(), kTrialBegins);
  const std::span<const TokenId> first = tokens.first(kTrialTokens);
  const Logits logits = model_.forward({.tokens = first,
                                        .positions = std::span<const Position>(positions_).first(kTrialTokens),
                                        .ancestors = {},
                                        .logits_rows = rows},
                                       cache_);
  cached_.assign(first.begin(), first.end());
  for (std::size_t i = 0; i < trial_.size(); ++i) {
    const std::span<const float> row = logits.row(static_cast<int>(i));
    const float best = largest(row);
    const double confidence = std::exp(best - log_sum_exp(row));
    const auto next = static_cast<std::size_t>(first[kTrialBegins + i + 1]);
    trial_[i] = {std::isfinite(confidence) ? confidence : 0, row[next] == best};
  }
  trial_known_ = true;
}

bool ModelDrafter::allow_step(DraftQuestion question, std::span<const TokenId> tokens, LengthPolicy& policy) {
  try_out(question, tokens.first(tokens.size() - static_cast<std::size_t>(question.depth - 1)), policy);
  question.feed = unread(tokens);
  if (policy.allow_draft_step(question)) return true;
  if (question.feed <= 2 * kReadAfresh) return false;
  question.feed = kReadAfresh;
  question.partial = true;
  if (!policy.allow_draft_step(question)) return false;
  reset();
  cached_.assign(tokens.begin(), tokens.end() - kReadAfresh);
  skipped_ = cached_.size();
  return true;
}

void ModelDrafter::learn(TokenTree& tree, int node, const Logits& logits, const Context& context) {
  Branch& at = branch(node);
  at.known = true;
  at.left = 1;
  if (sampler_.constraint() != nullptr && !sampler_.any_usable(logits.row(0), context)) {
    at.row_open = false;  // a head with rows for a part of the vocabulary may have none for what may follow
    return;
  }
  const auto take = [&](auto&& probability_of) {
    for (int child = tree.next_child(node, node); child >= 0; child = tree.next_child(node, child)) {
      at.left = std::max(0.0, at.left - probability_of(tree.token(child)));
    }
  };
  if (sampler_.greedy()) {
    // The best token is sure to be drawn, which says nothing of how sure the model is: its own probabilities do.
    const std::span<const float> row = logits.row(0);
    at.ranked = sampler_.best_tokens(row, context, at.best);
    const double normaliser = sampler_.log_total(row);
    const auto probability = [&](double logit) {
      const double value = std::exp(logit - normaliser);
      return std::isfinite(value) ? std::min(value, 1.0) : 1.0;
    };
    for (RankedToken& token : at.best) token.value = probability(token.value);
    take([&](TokenId token) { return probability(row[static_cast<std::size_t>(token)]); });
  } else {
    Distribution& proposal = tree.set_proposal(node);
    sampler_.distribution(logits, 0, context, proposal);
    take([&](TokenId token) { return proposal[token]; });
  }
  find_next(tree, node);
}

// What the likeliest next child of a known node would be worth.
void ModelDrafter::find_next(const TokenTree& tree, int node) {
  Branch& at = branch(node);
  double most = 0;
  if (sampler_.greedy()) {
    while (at.rank < at.ranked && tree.child(node, at.best[static_cast<std::size_t>(at.rank)].token) >= 0) ++at.rank;
    if (at.rank < at.ranked) most = at.best[static_cast<std::size_t>(at.rank)].value;
  } else {
    const Distribution& proposal = *tree.proposal(node);
    for (std::size_t i = 0; i < proposal.size(); ++i) {
      if (proposal.probabilities[i] > most && tree.child(node, proposal.tokens[i]) < 0)
        most = proposal.probabilities[i];
    }
  }
  at.next = most > 0 && at.left > 0 ? std::min(most / at.left, 1.0) : 0;
}

// Gives a known node its next child; false when it gets none.
bool ModelDrafter::add_row(TokenTree& tree, int node, std::uint32_t start, LengthPolicy& policy) {
  DraftQuestion row = question(tree, node);
  row.next_confidence = branch(node).next;
  if (row.siblings >= kMostChildren || !policy.allow_row(row)) return false;
  const int child = add_child(tree, node, start);
  Branch& at = branch(node);
  branch(child) = {};
  branch(child).path = at.path * at.left * tree.confidence(child);
  at.left *= 1 - static_cast<double>(tree.confidence(child));
  find_next(tree, node);
  return true;
}

int ModelDrafter::add_child(TokenTree& tree, int node, std::uint32_t start) {
  const Branch& at = branch(node);
  if (sampler_.greedy()) {
    return tree.add(node, at.best[static_cast<std::size_t>(at.rank)].token, ChildKind::deterministic,
                    DraftSource::model, static_cast<float>(at.next));
  }
  return tree.draw_child(node, DraftSource::model, [&](const Distribution& left) {
    return draw_ == DraftDraw::shared_noise
               ? sampler_.draw_with_noise(left, start + static_cast<std::uint32_t>(tree.depth(node)))
               : sampler_.draw(left, start, tree.size(), DrawPurpose::draft);
  });
}

// Whether the draft can follow these tokens at all; what stops it is said once.
bool ModelDrafter::can_draft(std::span<const TokenId> tokens) {
  if (static_cast<int>(tokens.size()) > room_) {
    if (!std::exchange(said_full_, true)) {
      warning_ = fmt::format("the draft context of {} tokens is full: the text goes on without drafting", room_);
    }
    return false;
  }
  const int rows = model_.spec().vocab;
  const auto unknown = std::find_if(tokens.begin(), tokens.end(), [rows](TokenId id) { return id >= rows; });
  if (unknown == tokens.end()) return true;
  if (!std::exchange(said_unknown_, true)) {
    warning_ = fmt::format("token {} has no row in the draft model (it has {}): no drafting while the context holds it",
                           *unknown, rows);
  }
  return false;
}

// What a draft step on this text runs: all of it where it differs from what was skipped.
int ModelDrafter::unread(std::span<const TokenId> tokens) const {
  const std::size_t known = shared(tokens);
  return static_cast<int>(known < skipped_ ? tokens.size() : tokens.size() - known);
}

// Tokens that the cache shares with these. The pending token never counts: its logits are wanted.
std::size_t ModelDrafter::shared(std::span<const TokenId> tokens) const {
  const std::size_t most = std::min(cached_.size(), tokens.size() - 1);
  const auto [first, other] =
      std::mismatch(cached_.begin(), cached_.begin() + static_cast<std::ptrdiff_t>(most), tokens.begin());
  return static_cast<std::size_t>(first - cached_.begin());
}

void ModelDrafter::forget_differences(std::span<const TokenId> tokens) {
  cached_.resize(shared(tokens));
  if (cached_.size() < kTrialTokens) trial_known_ = false;
  if (cached_.size() < skipped_) reset();
  const auto wanted = cached_.size() - skipped_;
  if (static_cast<std::size_t>(cache_.truncate(static_cast<int>(wanted))) < wanted) reset();
}

// Runs all tokens that are not cached yet, in chunks, and returns the logits of the last.
Logits ModelDrafter::feed(std::span<const TokenId> tokens) {
  for (;;) {
    const std::size_t done = cached_.size();
    const std::size_t rows = std::min(tokens.size() - done, static_cast<std::size_t>(model_.max_rows()));
    const bool last = done + rows == tokens.size();
    const std::array<int, 1> last_row{static_cast<int>(rows) - 1};
    const std::span<const TokenId> chunk = tokens.subspan(done, rows);
    const Logits logits =
        model_.forward({.tokens = chunk,
                        .positions = std::span<const Position>(positions_).subspan(done - skipped_, rows),
                        .ancestors = {},
                        .logits_rows = std::span<const int>(last_row).first(last ? 1 : 0),
                        .picking = last && picking_ ? &*picking_ : nullptr},
                       cache_);
    cached_.insert(cached_.end(), chunk.begin(), chunk.end());
    if (last) return logits;
  }
}

}  // namespace tandem
