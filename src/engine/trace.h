// One answer with every stage of its steps in sight: what went in, what each stage left, what was likely, what was
// drawn. The steps are those of an untraced answer; only their results are read.
#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "src/engine/generation.h"

namespace tandem {

struct TokenValue {
  TokenId id;
  double value;
};

// What the target says about the token after one node.
struct RowTrace {
  std::vector<TokenValue> logits;         // the largest as they left the model, descending
  std::vector<TokenValue> probabilities;  // the largest after the whole sampler chain, descending
  int support = 0;                        // tokens that the chain leaves
};

enum class NodeStatus { pending, accepted, rejected, untested };
std::string_view name_of(NodeStatus status);
std::string_view name_of(DraftSource source);

struct NodeTrace {
  TokenId token = 0;
  int parent = -1;
  DraftSource source = DraftSource::none;
  ChildKind kind = ChildKind::deterministic;
  double q = 1;  // the probability that a sampled child was drawn with; 1 for a deterministic one
  double p = 1;  // the target's own after its parent, before siblings were rejected
  NodeStatus status = NodeStatus::pending;
  RowTrace next{};  // what may follow this node
};

// plain: a step without a proposal. bonus: the whole path down to a leaf stood. correction: no child stood.
enum class DrawKind { plain, bonus, correction };
std::string_view name_of(DrawKind kind);

// One pass of the prompt.
struct PrefillTrace {
  int cached = 0;  // tokens in the cache before it
  int rows = 0;
  std::vector<StageTrace> stages;
};

// The first token, or one step.
struct StepTrace {
  int index = 0;                   // 0 is the first token, drawn from the last row of the prefill: no pass of its own
  int cached = 0;                  // tokens in the cache before the pass
  std::vector<StageTrace> stages;  // of the target's pass over all nodes
  std::vector<NodeTrace> nodes;    // the proposal, node 0 the pending token
  std::vector<int> path;           // accepted nodes, node 0 first
  TokenId drawn = 0;               // the token after the path
  double probability = 0;          // of it, after the whole chain
  DrawKind draw = DrawKind::plain;
  std::vector<TokenId> committed;  // drafts of the path and the token drawn
  int cut = 0;                     // of these, dropped behind a stop
};

class Tracer {
 public:
  // Follows a fresh generation of this engine, which nothing else advances meanwhile; both outlive the tracer. `top`:
  // how many logits and probabilities to keep of a row.
  Tracer(Engine& engine, Generation& generation, int top);
  ~Tracer();
  Tracer(const Tracer&) = delete;
  Tracer& operator=(const Tracer&) = delete;

  // Prefills one chunk. Empty when there was nothing left to prefill, or no leave to do it: go on with advance().
  std::optional<PrefillTrace> prefill();
  // Commits the first token or one step. Empty when the answer had ended before it.
  std::optional<StepTrace> advance();

 private:
  void describe(const TokenTree& tree, Context& context, StepTrace& step);
  RowTrace row(std::span<const float> logits, const Distribution& p) const;

  Engine& engine_;
  Generation& generation_;
  std::size_t top_;
  ForwardTrace forward_;
};

// Lines of `tandem trace --json`: one object each, texts with U+FFFD for what is not UTF-8, null for what is not
// finite.
nlohmann::ordered_json to_json(const PrefillTrace& prefill);
nlohmann::ordered_json to_json(const StepTrace& step, const Tokenizer& tokenizer);
// [{"id", "text"}, ...]
nlohmann::ordered_json tokens_json(std::span<const TokenId> ids, const Tokenizer& tokenizer);

}  // namespace tandem
