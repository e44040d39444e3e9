// The exact law of what a step commits: every tree a drafter could draw, times every way the coins could fall, through
// the product's own walks and, unless a test injects a faulty one, the product's NodeState.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "src/base/token_tree.h"
#include "tests/verify/toy.h"
#include "verify/block.h"
#include "verify/rejection.h"

namespace tandem::testing {

// Children of every node at one depth. Deterministic ones are the most probable tokens of the draft (plus, with
// `skewed`, an arbitrary choice of the path instead).
struct Level {
  int deterministic = 0;
  int sampled = 0;
};
using Shape = std::vector<Level>;

struct DraftHabits {
  bool skewed = false;                // deterministic children do not follow q
  bool call_all_sampled = false;      // FAULT: deterministic children are labelled as drawn from q
  bool drop_all_but_token_0 = false;  // FAULT: a drawn token is dropped, depending on what it is
  bool with_replacement = false;      // independent draws; a token may come twice
  int best_first_nodes = 0;  // not 0: the tree grows to so many nodes, as deep as the shape, where q makes the next
                             // child likeliest after all that was drawn so far
};

// The rules that are enumerated: a walk of the product and the state of its nodes.
template <typename State = NodeState>
struct Rejection {
  State state{};
  template <typename TargetAt, typename Accepts>
  const Distribution& operator()(const TokenTree& tree, Verdict& verdict, TargetAt&& target_at, Accepts&& accepts) {
    return follow_proposal(tree, state, verdict, target_at, accepts);
  }
};
template <typename State = NodeState>
struct Block {
  explicit Block(const State& state = {}) : states(kMaxTreeNodes, state) {}
  std::vector<State> states;
  template <typename TargetAt, typename Accepts>
  const Distribution& operator()(const TokenTree& tree, Verdict& verdict, TargetAt&& target_at, Accepts&& accepts) {
    return follow_deepest(tree, states, verdict, target_at, accepts);
  }
};

// Every way the coins of a rule can fall on one tree: replays the walk with the coins fixed so far, new coins falling
// on "accept" wherever that is possible. Calls record(verdict, next, probability) for each.
template <typename Rule, typename TargetAt, typename Record>
void for_each_branch(Rule& rule, const TokenTree& tree, TargetAt&& target_at, Record&& record) {
  struct Coin {
    bool accept;
    double probability;  // of accepting
  };
  std::vector<Coin> coins;
  while (true) {
    std::size_t used = 0;
    double branch = 1;
    Verdict verdict;
    const Distribution& next = rule(tree, verdict, target_at, [&](int, double probability) {
      if (used == coins.size()) coins.push_back({probability > 0, std::min(probability, 1.0)});
      const Coin coin = coins[used++];
      branch *= coin.accept ? coin.probability : 1 - coin.probability;
      return coin.accept;
    });
    record(verdict, next, branch);
    while (!coins.empty() && (!coins.back().accept || coins.back().probability >= 1)) coins.pop_back();
    if (coins.empty()) return;
    coins.back().accept = false;
  }
}

template <typename Rule = Rejection<>>
class Enumeration {
 public:
  Enumeration(int vocab, const Pair& pair, Shape shape, DraftHabits habits = {}, Rule rule = Rule())
      : vocab_(vocab), shape_(std::move(shape)), habits_(habits), rule_(std::move(rule)) {
    const int depth = static_cast<int>(shape_.size());
    p_.resize(path_codes(vocab, depth));
    q_.resize(p_.size());
    law_.resize(path_codes(vocab, depth + 1));
    Path path;
    tabulate(pair, path);
    drafted_ = {{-1, 0, ChildKind::deterministic, {}}};
    habits_.best_first_nodes > 0 ? grow(1.0) : expand(0, 1.0);
    path.clear();
    compare(path, 1.0, 0.0);
  }

  double total_variation() const { return total_variation_; }  // joint law of depth + 1 tokens against the target's
  double expected_tokens() const { return 1 + expected_accepted_; }
  double total_weight() const { return total_weight_; }
  long outcomes() const { return outcomes_; }  // trees times branches

 private:
  struct Drafted {
    int parent;
    TokenId token;
    ChildKind kind;
    Path path;  // tokens below the pending one
  };

  void tabulate(const Pair& pair, Path& path) {
    p_[path_code(path, vocab_)] = support_of(pair.target(path));
    q_[path_code(path, vocab_)] = support_of(pair.draft(path));
    if (path.size() == shape_.size()) return;
    for (TokenId token = 0; token < vocab_; ++token) {
      path.push_back(token);
      tabulate(pair, path);
      path.pop_back();
    }
  }

  const Distribution& p(const Path& path) const { return p_[path_code(path, vocab_)]; }
  const Distribution& q(const Path& path) const { return q_[path_code(path, vocab_)]; }

  void add(std::size_t parent, TokenId token, ChildKind kind) {
    Path path = drafted_[parent].path;
    path.push_back(token);
    drafted_.push_back({static_cast<int>(parent), token, kind, std::move(path)});
  }

  std::vector<TokenId> deterministic_children(const Path& path, int count) const {
    std::vector<TokenId> tokens(static_cast<std::size_t>(vocab_));
    for (TokenId i = 0; i < vocab_; ++i) tokens[i] = i;
    const Distribution& q_here = q(path);
    std::stable_sort(tokens.begin(), tokens.end(), [&](TokenId a, TokenId b) { return q_here[a] > q_here[b]; });
    if (habits_.skewed) std::rotate(tokens.begin(), tokens.begin() + path_code(path, vocab_) % vocab_, tokens.end());
    tokens.resize(static_cast<std::size_t>(std::min(count, vocab_)));
    return tokens;
  }

  // Gives node `node` its children in every possible way, then goes on with the next node.
  void expand(std::size_t node, double weight) {
    if (node == drafted_.size()) return verify(weight);
    const Path path = drafted_[node].path;
    if (path.size() == shape_.size()) return expand(node + 1, weight);
    const Level level = shape_[path.size()];
    const std::size_t before = drafted_.size();
    Distribution left = q(path);
    for (const TokenId token : deterministic_children(path, level.deterministic)) {
      add(node, token, habits_.call_all_sampled ? ChildKind::sampled : ChildKind::deterministic);
      left.remove(token);
    }
    draw(node, level.sampled, left, weight);
    drafted_.resize(before, drafted_[0]);
  }

  // Probability of the path to a node, and what q leaves for its next child.
  double path_probability(std::size_t node) const {
    double probability = 1;
    Path path = drafted_[node].path;
    while (!path.empty()) {
      const TokenId token = path.back();
      path.pop_back();
      probability *= q(path)[token];
    }
    return probability;
  }
  Distribution left_at(std::size_t node) const {
    Distribution left = q(drafted_[node].path);
    for (const Drafted& other : drafted_) {
      if (other.parent == static_cast<int>(node)) left.remove(other.token);
    }
    return left;
  }
  double promise(std::size_t node) const {
    if (drafted_[node].path.size() == shape_.size()) return 0;
    double most = 0;
    const Distribution left = left_at(node);
    for (const TokenId token : left.tokens) most = std::max(most, q(drafted_[node].path)[token]);
    return path_probability(node) * most;
  }

  void grow(double weight) {
    std::size_t best = 0;
    for (std::size_t node = 1; node < drafted_.size(); ++node) {
      if (promise(node) > promise(best)) best = node;
    }
    if (static_cast<int>(drafted_.size()) == habits_.best_first_nodes || promise(best) == 0) return verify(weight);
    const Distribution left = left_at(best);
    for (std::size_t i = 0; i < left.size(); ++i) {
      add(best, left.tokens[i], ChildKind::sampled);
      grow(weight * left.probabilities[i]);
      drafted_.pop_back();
    }
  }

  void draw(std::size_t node, int remaining, const Distribution& left, double weight) {
    if (remaining == 0 || left.size() == 0) return expand(node + 1, weight);
    for (std::size_t i = 0; i < left.size(); ++i) {
      const bool dropped = habits_.drop_all_but_token_0 && left.tokens[i] != 0;
      if (!dropped) add(node, left.tokens[i], ChildKind::sampled);
      Distribution rest = left;
      if (!habits_.with_replacement) rest.remove(left.tokens[i]);
      draw(node, remaining - 1, rest, weight * left.probabilities[i]);
      if (!dropped) drafted_.pop_back();
    }
  }

  void build_tree() {
    tree_.clear(0);
    // Leaves get a proposal too, as a drafter that looked one step ahead would leave it: rules must not use it.
    for (std::size_t i = 0; i < drafted_.size(); ++i) {
      if (i > 0) add_child(tree_, drafted_[i].parent, drafted_[i].token, drafted_[i].kind);
      tree_.set_proposal(static_cast<int>(i)) = q(drafted_[i].path);
    }
  }

  void verify(double weight) {
    build_tree();
    for_each_branch(
        rule_, tree_, [&](int node) -> const Distribution& { return p(drafted_[node].path); },
        [&](const Verdict& verdict, const Distribution& next, double branch) {
          record(verdict, next, weight * branch);
        });
  }

  void record(const Verdict& verdict, const Distribution& next, double weight) {
    ++outcomes_;
    total_weight_ += weight;
    expected_accepted_ += weight * verdict.accepted();
    Path committed = drafted_[static_cast<std::size_t>(verdict.path().back())].path;
    committed.push_back(0);
    for (std::size_t i = 0; i < next.size(); ++i) {
      committed.back() = next.tokens[i];
      law_[path_code(committed, vocab_)] += weight * next.probabilities[i];
    }
  }

  // `target`: probability of the path under the target; `reached`: mass of shorter commitments that plain decoding from
  // p then continued to this path.
  void compare(Path& path, double target, double reached) {
    reached += path.empty() ? 0 : law_[path_code(path, vocab_)];
    if (path.size() == shape_.size() + 1) {
      total_variation_ += 0.5 * std::abs(target - reached);
      return;
    }
    const Distribution& here = p(path);
    for (TokenId token = 0; token < vocab_; ++token) {
      path.push_back(token);
      compare(path, target * here[token], reached * here[token]);
      path.pop_back();
    }
  }

  int vocab_;
  Shape shape_;
  DraftHabits habits_;
  Rule rule_;
  std::vector<Distribution> p_, q_;  // by path code
  std::vector<double> law_;          // by path code: probability that a step commits exactly this
  std::vector<Drafted> drafted_;     // nodes of the tree in hand
  TokenTree tree_;
  double total_variation_ = 0, expected_accepted_ = 0, total_weight_ = 0;
  long outcomes_ = 0;
};

}  // namespace tandem::testing
