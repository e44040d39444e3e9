// The one proposal type: a tree of tokens below the pending token. A chain is a tree; plain decoding is a tree of one
// node.
#pragma once
#include <algorithm>
#include <array>
#include <cassert>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "src/base/distribution.h"
#include "src/base/types.h"

namespace tandem {

// How a child was chosen, which decides how a lossless rule must treat it.
enum class ChildKind : std::uint8_t {
  deterministic,  // by a function of the committed tokens: accepted against the current residual p(x)
  sampled  // drawn from its parent's proposal q less its deterministic siblings, without replacement, in draw order
};

// What TokenTree::add() takes: naming `sampled` there does not compile.
struct DeterministicOnly {
  consteval DeterministicOnly(ChildKind kind) {  // NOLINT(google-explicit-constructor): callers name the kind
    if (kind != ChildKind::deterministic) throw "a sampled child comes from draw_child() alone";
  }
};

// The noise that draws a sampled child, which the rule decides. Independent: keyed by (start of the step, node), as
// accepting by ratio needs. Shared: the noise of the child's position, with which the target will draw there too.
enum class DraftDraw : std::uint8_t { independent, shared_noise };

// Where a token came from, for metrics and calibration.
enum class DraftSource : std::uint8_t { none, model, ngram, corpus, recycle, other, grammar };
inline constexpr int kDraftSources = 7;
inline constexpr std::array<std::string_view, kDraftSources> kDraftSourceNames{"none",    "model", "ngram",  "corpus",
                                                                               "recycle", "other", "grammar"};

// Node 0 is the pending token. Parents come before children; at most kMaxTreeNodes nodes. Reused between steps: clear()
// keeps all memory, so that proposing allocates nothing once warm.
class TokenTree {
 public:
  explicit TokenTree(TokenId pending = 0) { clear(pending); }

  void clear(TokenId pending) {
    nodes_[0] = {pending, -1, 0, 1, ChildKind::deterministic, DraftSource::none, 1.0f};
    size_ = 1;
    has_proposal_ = 0;
  }

  // Adds a deterministic child and returns its index. Those of a node come before its sampled ones; siblings should
  // differ in token (a repeated one is harmless: rules never accept it, and it costs a row). `confidence`: the
  // drafter's own estimate, in [0, 1].
  int add(int parent, TokenId token, DeterministicOnly, DraftSource source, float confidence = 1.0f) {
    return add_node(parent, token, ChildKind::deterministic, source, confidence);
  }

  // Draws a sampled child, adds it and returns its index: one step, so that nobody can look at a drawn token and leave
  // it out, which would bias the output (algorithms.md section 1). `draw(left)` returns a token drawn from
  // left_to_draw(parent), which is not empty. Its confidence is its probability there.
  template <typename Draw>
  int draw_child(int parent, DraftSource source, Draw&& draw) {
    const Distribution& left = left_to_draw(parent);
    const TokenId token = draw(left);
    return add_node(parent, token, ChildKind::sampled, source, static_cast<float>(left[token]));
  }

  // The proposal of `parent`, which is set, without the children that it has: what the next sampled one is drawn from.
  // Valid until the next call or change of the tree.
  const Distribution& left_to_draw(int parent) {
    assert(proposal(parent) != nullptr);
    int child = next_child(parent, parent);
    if (child < 0) return *proposal(parent);
    left_ = *proposal(parent);
    for (; child >= 0; child = next_child(parent, child)) left_.remove(token(child));
    return left_;
  }

  // The distribution that the sampled children of `node` are drawn from, before the removal of its deterministic
  // children (left_to_draw() and the rules take those out). Returns storage to fill, valid until the
  // tree is cleared; its old content is cleared.
  Distribution& set_proposal(int node) {
    assert(node >= 0 && node < size_);
    if (proposals_.empty()) proposals_.resize(kMaxTreeNodes);  // all at once: references stay valid
    has_proposal_ |= std::uint64_t{1} << node;
    proposals_[node].clear();
    return proposals_[node];
  }
  const Distribution* proposal(int node) const { return has_proposal_ >> node & 1 ? &proposals_[node] : nullptr; }

  int size() const { return size_; }
  bool full() const { return size_ == kMaxTreeNodes; }
  TokenId token(int node) const { return nodes_[node].token; }
  int parent(int node) const { return nodes_[node].parent; }
  int depth(int node) const { return nodes_[node].depth; }
  std::uint64_t ancestors(int node) const { return nodes_[node].ancestors; }  // bit per ancestor, the node included
  ChildKind kind(int node) const { return nodes_[node].kind; }
  DraftSource source(int node) const { return nodes_[node].source; }
  float confidence(int node) const { return nodes_[node].confidence; }
  int max_depth() const {
    int depth = 0;
    for (int i = 0; i < size_; ++i) depth = std::max(depth, nodes_[i].depth);
    return depth;
  }
  // The next child of `parent`, in the order of adding, after node `previous` (start with previous = parent), -1 when
  // there is none.
  int next_child(int parent, int previous) const {
    for (int i = previous + 1; i < size_; ++i) {
      if (nodes_[i].parent == parent) return i;
    }
    return -1;
  }
  // The end of the path of first children.
  int first_leaf() const {
    int end = 0;
    for (int child = next_child(0, 0); child >= 0; child = next_child(end, end)) end = child;
    return end;
  }
  // Product of the confidences on the path to `node`.
  double path_confidence(int node) const {
    double product = 1;
    for (int i = node; i > 0; i = parent(i)) product *= static_cast<double>(confidence(i));
    return product;
  }
  // The first child of `parent` with this token, -1 when there is none.
  int child(int parent, TokenId token) const {
    for (int i = next_child(parent, parent); i >= 0; i = next_child(parent, i)) {
      if (nodes_[i].token == token) return i;
    }
    return -1;
  }

 private:
  struct Node {
    TokenId token;
    int parent;
    int depth;
    std::uint64_t ancestors;
    ChildKind kind;
    DraftSource source;
    float confidence;
  };

  int add_node(int parent, TokenId token, ChildKind kind, DraftSource source, float confidence) {
    assert(size_ < kMaxTreeNodes && parent >= 0 && parent < size_);
    const int node = size_++;
    nodes_[node] = {
        token,  parent,    nodes_[parent].depth + 1, nodes_[parent].ancestors | (std::uint64_t{1} << node), kind,
        source, confidence};
    return node;
  }

  std::array<Node, kMaxTreeNodes> nodes_{};
  int size_ = 1;
  std::uint64_t has_proposal_ = 0;
  std::vector<Distribution> proposals_;
  Distribution left_;  // scratch of left_to_draw()
};

// What verification decided about one tree.
struct Verdict {
  std::array<int, kMaxTreeNodes> path_nodes{};  // accepted path, node 0 first, ascending
  int path_length = 0;                          // 1 + accepted drafts
  TokenId next = 0;                             // the correction or bonus token: the new pending token
  std::uint64_t tested = 0;                     // bit per node whose acceptance was decided (never node 0)

  std::span<const int> path() const { return {path_nodes.data(), static_cast<std::size_t>(path_length)}; }
  int accepted() const { return path_length - 1; }
  void extend(int node) { path_nodes[path_length++] = node; }
};

}  // namespace tandem
