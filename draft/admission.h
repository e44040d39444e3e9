// What the answer's constraint admits along the paths of a proposal.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <utility>

#include "src/base/token_tree.h"
#include "src/sample/constraint.h"

namespace tandem {

// Asked before a deterministic child takes a row: a token that the constraint refuses is never accepted. (Sampled ones
// come from distributions without such tokens.) Without a constraint everything is admitted. Allocates nothing.
class Admission {
 public:
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
