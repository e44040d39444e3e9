// What the answer's constraint admits along the paths of a proposal.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <utility>

#include "draft/length_policy.h"
#include "src/base/token_tree.h"
#include "src/sample/constraint.h"

namespace tandem {

// Asked before a deterministic child takes a row: a token that the constraint refuses is never accepted. (Sampled ones
// come from distributions without such tokens.) Without a constraint everything is admitted. Allocates nothing but for
// states of the constraint that are new.
class Admission {
 public:
  static constexpr double kSpelled = 0.95;  // confidence in a token of certain bytes: most texts take the longest

  explicit Admission(std::shared_ptr<Constraint> constraint = nullptr) : constraint_(std::move(constraint)) {}

  // A proposal begins below the last token of `context`, in a tree that only grows until the next call.
  void begin(const Context& context) {
    if (!constraint_) return;
    states_[0] = constraint_->state(context);
    known_ = 1;
  }

  bool admits(const TokenTree& tree, int node, TokenId token) {
    return !constraint_ || constraint_->admits(state(tree, node), token);
  }

  // Whether nothing but the end may follow the path to `node`: whatever is drafted there is cut.
  bool complete(const TokenTree& tree, int node) { return constraint_ && constraint_->complete(state(tree, node)); }

  // Adds a deterministic child of what the constraint leaves no choice about, if there is such a token and the policy
  // wants it: the only one that may follow, which is sure to be accepted, or, where the next bytes are certain and
  // several tokens spell them, the longest, about which the target decides. Its node, or -1.
  int add_certain(TokenTree& tree, int node, LengthPolicy& policy) {
    if (!constraint_ || tree.full() || tree.next_child(node, node) >= 0) return -1;
    const int at = state(tree, node);
    if (constraint_->complete(at)) return -1;
    TokenId token = constraint_->only(at);
    const double confidence = token >= 0 ? 1 : kSpelled;
    if (token < 0) token = constraint_->likely(at);
    if (token < 0) return -1;
    const DraftQuestion row{tree.depth(node) + 1, tree.size(),          tree.path_confidence(node),
                            confidence,           DraftSource::grammar, node};
    if (!policy.allow_row(row)) return -1;
    return tree.add(node, token, ChildKind::deterministic, DraftSource::grammar, static_cast<float>(confidence));
  }

 private:
  int state(const TokenTree& tree, int node) {
    int& state = states_[static_cast<std::size_t>(node)];
    if ((known_ >> node & 1) == 0) {
      state = constraint_->after(this->state(tree, tree.parent(node)), tree.token(node));
      known_ |= std::uint64_t{1} << node;
    }
    return state;
  }

  std::shared_ptr<Constraint> constraint_;
  std::array<int, kMaxTreeNodes> states_{};  // behind each node
  std::uint64_t known_ = 0;                  // a bit per node
};

}  // namespace tandem
