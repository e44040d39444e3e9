#include "draft/model_drafter.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <utility>

#include "src/base/error.h"

namespace tandem {
namespace {

// Drafted tokens on the context, popped however the proposal ends.
class Pushed {
 public:
  explicit Pushed(Context& context) : context_(context), size_(context.size()) {}
  ~Pushed() { context_.pop(context_.size() - size_); }
  Pushed(const Pushed&) = delete;
  Pushed& operator=(const Pushed&) = delete;

 private:
  Context& context_;
  int size_;
};

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
  const std::uint32_t start = context.position();
  const Pushed pushed(context);
  double path_confidence = 1;
  for (int node = 0; !tree_.full();) {
    DraftQuestion question{tree_.depth(node) + 1, tree_.size(), path_confidence, -1, DraftSource::model};
    if (!policy.allow_draft_step(question)) break;
    if (node == 0 && !can_draft(context.tokens())) break;
    if (context.size() > room_) break;
    if (node == 0) {
      forget_differences(context.tokens());
      model_.follow(context.tokens());
    }
    sampler_.distribution(feed(context.tokens()), context, proposal_);
    question.next_confidence = *std::max_element(proposal_.probabilities.begin(), proposal_.probabilities.end());
    if (!policy.allow_row(question)) break;

    std::swap(tree_.set_proposal(node), proposal_);
    node = tree_.draw_child(node, DraftSource::model, [&](const Distribution& q) {
      return draw_ == DraftDraw::shared_noise ? sampler_.draw_with_noise(q, context.position())
                                              : sampler_.draw(q, start, tree_.size(), DrawPurpose::draft);
    });
    path_confidence *= tree_.confidence(node);
    context.push(tree_.token(node));
  }
  return tree_;
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

// Cuts the cache back to what it shares with the committed tokens. The pending token always goes: its logits are
// wanted.
void ModelDrafter::forget_differences(std::span<const TokenId> tokens) {
  const std::size_t most = std::min(cached_.size(), tokens.size() - 1);
  const auto [first, other] =
      std::mismatch(cached_.begin(), cached_.begin() + static_cast<std::ptrdiff_t>(most), tokens.begin());
  cached_.erase(first, cached_.end());
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
