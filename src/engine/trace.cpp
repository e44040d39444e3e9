#include "src/engine/trace.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "verify/walk.h"

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;

// The `count` largest of the values, descending, ties by lowest id; NaN is left out. `id_of(i)`: the token of value i.
template <typename Values, typename IdOf>
std::vector<TokenValue> largest_values(const Values& values, std::size_t count, IdOf&& id_of) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!std::isnan(values[i])) order.push_back(i);
  }
  count = std::min(count, order.size());
  const auto end = order.begin() + static_cast<std::ptrdiff_t>(count);
  std::partial_sort(order.begin(), end, order.end(), [&](std::size_t a, std::size_t b) {
    return values[a] != values[b] ? values[a] > values[b] : a < b;
  });
  std::vector<TokenValue> out;
  for (auto i = order.begin(); i != end; ++i) out.push_back({id_of(*i), values[*i]});
  return out;
}

NodeStatus status_of(int node, const Verdict& verdict) {
  if (node == 0) return NodeStatus::pending;
  const std::span<const int> path = verdict.path();
  if (std::find(path.begin(), path.end(), node) != path.end()) return NodeStatus::accepted;
  return verdict.tested >> node & 1 ? NodeStatus::rejected : NodeStatus::untested;
}

DrawKind draw_kind(const TokenTree& tree, int last) {
  if (tree.size() == 1) return DrawKind::plain;
  return tree.next_child(last, last) < 0 ? DrawKind::bonus : DrawKind::correction;
}

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json token_json(TokenId id, const Tokenizer& tokenizer) {
  return {{"id", id}, {"text", to_valid_utf8(tokenizer.bytes(id, true))}};
}

Json values_json(const std::vector<TokenValue>& values, const char* key, const Tokenizer& tokenizer) {
  Json list = Json::array();
  for (const TokenValue& value : values) {
    list.push_back(token_json(value.id, tokenizer));
    list.back()[key] = number(value.value);
  }
  return list;
}

Json stages_json(const std::vector<StageTrace>& stages) {
  Json list = Json::array();
  for (const StageTrace& stage : stages) {
    Json norms = Json::array();
    for (const double norm : stage.norms) norms.push_back(number(norm));
    list.push_back({{"stage", stage.name}, {"shape", {stage.rows, stage.cols}}, {"norms", norms}});
  }
  return list;
}

Json node_json(const NodeTrace& node, const Tokenizer& tokenizer) {
  Json json = token_json(node.token, tokenizer);
  json["parent"] = node.parent < 0 ? Json(nullptr) : Json(node.parent);
  json["status"] = name_of(node.status);
  if (node.parent >= 0) {
    json["source"] = name_of(node.source);
    json["kind"] = node.kind == ChildKind::sampled ? "sampled" : "deterministic";
    json["q"] = node.q;
    json["p"] = node.p;
  }
  json["next"] = {{"logits", values_json(node.next.logits, "logit", tokenizer)},
                  {"probabilities", values_json(node.next.probabilities, "p", tokenizer)},
                  {"support", node.next.support}};
  return json;
}

}  // namespace

std::string_view name_of(NodeStatus status) {
  switch (status) {
    case NodeStatus::pending:
      return "pending";
    case NodeStatus::accepted:
      return "accepted";
    case NodeStatus::rejected:
      return "rejected";
    case NodeStatus::untested:
      break;
  }
  return "not tested";
}

std::string_view name_of(DraftSource source) { return kDraftSourceNames[static_cast<std::size_t>(source)]; }

std::string_view name_of(DrawKind kind) {
  return kind == DrawKind::plain ? "plain" : kind == DrawKind::bonus ? "bonus" : "correction";
}

Tracer::Tracer(Engine& engine, Generation& generation, int top)
    : engine_(engine), generation_(generation), top_(static_cast<std::size_t>(top)) {
  engine_.set_trace(&forward_);
}

Tracer::~Tracer() { engine_.set_trace(nullptr); }

std::optional<PrefillTrace> Tracer::prefill() {
  const int cached = generation_.prefilled();
  generation_.prefill();
  const int rows = generation_.prefilled() - cached;
  if (rows == 0) return std::nullopt;
  return PrefillTrace{cached, rows, forward_.stages};
}

std::optional<StepTrace> Tracer::advance() {
  Context context = engine_.context();
  const std::size_t before = generation_.result().ids.size();
  StepTrace step;
  step.cached = generation_.prefilled();
  generation_.advance();
  const std::size_t taken = generation_.result().ids.size() - before;
  if (taken == 0) return std::nullopt;
  if (before == 0) {
    step.cached = context.size();
    describe(TokenTree(context.tokens().back()), context, step);
  } else {
    step.index = static_cast<int>(engine_.metrics().steps);
    step.stages = forward_.stages;
    describe(engine_.last_tree(), context, step);
  }
  step.cut = static_cast<int>(step.committed.size() - taken);
  return step;
}

// `context` is as it was when the step began.
void Tracer::describe(const TokenTree& tree, Context& context, StepTrace& step) {
  const Verdict& verdict = engine_.last_verdict();
  Walk walk(tree, context);
  std::vector<Distribution> after(static_cast<std::size_t>(tree.size()));
  for (int i = 0; i < tree.size(); ++i) {
    walk.go_to(i);
    engine_.sampler().distribution(engine_.last_logits().row(i), context, after[i]);
    NodeTrace node{.token = tree.token(i), .parent = tree.parent(i), .source = tree.source(i), .kind = tree.kind(i)};
    if (i > 0) node.p = after[tree.parent(i)][tree.token(i)];
    if (node.kind == ChildKind::sampled) node.q = tree.confidence(i);
    node.status = status_of(i, verdict);
    node.next = row(engine_.last_logits().row(i), after[i]);
    step.nodes.push_back(std::move(node));
  }
  step.path.assign(verdict.path().begin(), verdict.path().end());
  step.drawn = verdict.next;
  step.probability = after[step.path.back()][verdict.next];
  step.draw = draw_kind(tree, step.path.back());
  for (const int node : verdict.path().subspan(1)) step.committed.push_back(tree.token(node));
  step.committed.push_back(verdict.next);
}

RowTrace Tracer::row(std::span<const float> logits, const Distribution& p) const {
  return {largest_values(logits, top_, [](std::size_t i) { return static_cast<TokenId>(i); }),
          largest_values(p.probabilities, top_, [&](std::size_t i) { return p.tokens[i]; }),
          static_cast<int>(p.size())};
}

Json tokens_json(std::span<const TokenId> ids, const Tokenizer& tokenizer) {
  Json list = Json::array();
  for (const TokenId id : ids) list.push_back(token_json(id, tokenizer));
  return list;
}

Json to_json(const PrefillTrace& prefill) {
  return {{"event", "prefill"},
          {"cached", prefill.cached},
          {"rows", prefill.rows},
          {"stages", stages_json(prefill.stages)}};
}

Json to_json(const StepTrace& step, const Tokenizer& tokenizer) {
  Json nodes = Json::array();
  for (const NodeTrace& node : step.nodes) nodes.push_back(node_json(node, tokenizer));
  Json draw = token_json(step.drawn, tokenizer);
  draw["p"] = step.probability;
  draw["kind"] = name_of(step.draw);
  return {{"event", "step"},       {"step", step.index},
          {"cached", step.cached}, {"stages", stages_json(step.stages)},
          {"tree", nodes},         {"path", step.path},
          {"draw", draw},          {"committed", tokens_json(step.committed, tokenizer)},
          {"cut", step.cut}};
}

}  // namespace tandem
