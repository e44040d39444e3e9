#include "draft/model_drafter.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "src/base/error.h"
#include "src/sample/logprobs.h"

namespace tandem {
namespace {

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
                           TokenMask mask, DraftDraw draw)
    : model_(model),
      draw_(draw),
      sampler_(sampling, noise, std::move(mask)),
      cache_(model.make_cache(context, kv_type)),
      room_(std::min(context, model.max_positions())),
      positions_(static_cast<std::size_t>(room_)) {
  require_drawable(model.head_tokens(), sampler_.options(), sampler_.mask());
  cached_.reserve(positions_.size());
  std::iota(positions_.begin(), positions_.end(), 0);
}

void ModelDrafter::reset() {
  cache_.truncate(0);
  cached_.clear();
}

std::string ModelDrafter::take_warning() { return std::exchange(warning_, {}); }

const TokenTree& ModelDrafter::propose(Context& context, LengthPolicy& policy) {
  tree_.clear(context.tokens().back());
  grow(tree_, context, policy);
  return tree_;
}

void ModelDrafter::grow(TokenTree& tree, Context& context, LengthPolicy& policy) {
  const Pushed pushed(context);
  int node = 0;
  for (int child = tree.next_child(0, 0); child >= 0; child = tree.next_child(node, node)) {
    node = child;
    context.push(tree.token(node));
  }
  extend(tree, node, context, policy);
}

DraftQuestion ModelDrafter::first(const Context& context) {
  return first(TokenTree(context.tokens().back()), 0, context.tokens());
}

DraftQuestion ModelDrafter::first(const TokenTree& tree, int node, std::span<const TokenId> tokens) const {
  double path_confidence = 1;
  for (int i = node; i > 0; i = tree.parent(i)) path_confidence *= tree.confidence(i);
  return {tree.depth(node) + 1,
          tree.size(),
          path_confidence,
          -1,
          DraftSource::model,
          node,
          static_cast<int>(tokens.size() - shared(tokens))};
}

void ModelDrafter::extend(TokenTree& tree, int node, Context& context, LengthPolicy& policy) {
  const std::uint32_t start = context.position() - static_cast<std::uint32_t>(tree.depth(node));
  if (!can_draft(context.tokens())) return;
  bool followed = false;
  for (DraftQuestion question = first(tree, node, context.tokens()); !tree.full();) {
    if (context.size() > room_ || !policy.allow_draft_step(question)) break;
    forget_differences(context.tokens());
    if (!std::exchange(followed, true)) model_.follow(context.tokens());
    const std::span<const float> logits = feed(context.tokens());
    sampler_.distribution(logits, context, proposal_);
    question.next_confidence = confidence(logits);
    if (!policy.allow_row(question)) break;

    std::swap(tree.set_proposal(node), proposal_);
    node = tree.draw_child(node, DraftSource::model, [&](const Distribution& q) {
      return draw_ == DraftDraw::shared_noise ? sampler_.draw_with_noise(q, context.position())
                                              : sampler_.draw(q, start, tree.size(), DrawPurpose::draft);
    });
    context.push(tree.token(node));
    question = {tree.depth(node) + 1, tree.size(), question.path_confidence * tree.confidence(node), -1,
                DraftSource::model,   node};
  }
}

// Of the best token of proposal_. At temperature 0 that is sure to be drawn, which says nothing of how sure the model
// is.
double ModelDrafter::confidence(std::span<const float> logits) const {
  if (!sampler_.greedy()) return *std::max_element(proposal_.probabilities.begin(), proposal_.probabilities.end());
  const double probability = std::exp(logits[static_cast<std::size_t>(proposal_.tokens.front())] - log_sum_exp(logits));
  return std::isfinite(probability) ? probability : 1;
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

// Tokens that the cache shares with these. The pending token never counts: its logits are wanted.
std::size_t ModelDrafter::shared(std::span<const TokenId> tokens) const {
  const std::size_t most = std::min(cached_.size(), tokens.size() - 1);
  const auto [first, other] =
      std::mismatch(cached_.begin(), cached_.begin() + static_cast<std::ptrdiff_t>(most), tokens.begin());
  return static_cast<std::size_t>(first - cached_.begin());
}

void ModelDrafter::forget_differences(std::span<const TokenId> tokens) {
  cached_.resize(shared(tokens));
  cache_.truncate(static_cast<int>(cached_.size()));
}

// Runs all tokens that are not cached yet, in chunks, and returns the logits of the last.
std::span<const float> ModelDrafter::feed(std::span<const TokenId> tokens) {
  for (;;) {
    const std::size_t done = cached_.size();
    const std::size_t rows = std::min(tokens.size() - done, static_cast<std::size_t>(model_.max_rows()));
    const bool last = done + rows == tokens.size();
    const std::array<int, 1> last_row{static_cast<int>(rows) - 1};
    const std::span<const TokenId> chunk = tokens.subspan(done, rows);
    const Logits logits = model_.forward({.tokens = chunk,
                                          .positions = std::span<const Position>(positions_).subspan(done, rows),
                                          .ancestors = {},
                                          .logits_rows = std::span<const int>(last_row).first(last ? 1 : 0)},
                                         cache_);
    cached_.insert(cached_.end(), chunk.begin(), chunk.end());
    if (last) return logits.row(0);
  }
}

}  // namespace tandem
