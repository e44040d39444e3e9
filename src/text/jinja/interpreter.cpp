#include "src/text/jinja/interpreter.h"

#include <algorithm>

#include "src/text/jinja/filters.h"
#include "src/text/jinja/operators.h"

namespace tandem::jinja {

// One level further down.
class Interpreter::Entered {
 public:
  explicit Entered(Interpreter& interpreter) : interpreter_(interpreter) {
    if (interpreter_.depth_ >= interpreter_.runtime_.limits().depth) {
      unsupported("expected at most {} expressions and calls inside one another, got more",
                  interpreter_.runtime_.limits().depth);
    }
    ++interpreter_.depth_;
  }
  ~Entered() { --interpreter_.depth_; }
  Entered(const Entered&) = delete;
  Entered& operator=(const Entered&) = delete;

 private:
  Interpreter& interpreter_;
};

Interpreter::~Interpreter() {
  for (const NamespacePtr& space : namespaces_) space->attributes.clear();
  for (const auto& scope : closures_) {
    scope->names.clear();
    scope->parent.reset();
  }
  for (const LoopPtr& loop : loops_) loop->release();
}

MarkedText Interpreter::run(const Body& body, Variables variables) {
  MarkedText out;
  out_ = &out;
  auto globals = std::make_shared<Scope>();
  for (const auto& [name, builtin] : {std::pair{"range", Builtin::range},
                                      {"dict", Builtin::dict},
                                      {"namespace", Builtin::make_namespace},
                                      {"raise_exception", Builtin::raise_exception},
                                      {"strftime_now", Builtin::strftime_now},
                                      {"cycler", Builtin::unsupported},
                                      {"joiner", Builtin::unsupported},
                                      {"lipsum", Builtin::unsupported},
                                      {"self", Builtin::unsupported}}) {
    globals->names.emplace_back(name, Value(Function{builtin, name}));
  }
  auto given = std::make_shared<Scope>(Scope{std::move(globals), std::move(variables)});
  scope_ = std::make_shared<Scope>(Scope{std::move(given), {}});
  execute(body);
  return out;
}

Interpreter::Flow Interpreter::execute(const Body& body) {
  for (const Statement& statement : body) {
    const Entered entered(*this);
    place_ = statement.place;
    runtime_.spend(1);
    const Flow flow = std::visit([this](const auto& node) { return execute(node); }, statement.node);
    if (flow != Flow::next) return flow;
  }
  return Flow::next;
}

void Interpreter::emit(const MarkedText& text) {
  runtime_.spend_output(text.size());
  out_->append(text);
}

Interpreter::Flow Interpreter::execute(const Data& node) {
  emit(*node.text);
  return Flow::next;
}

Interpreter::Flow Interpreter::execute(const Print& node) {
  const Value value = evaluate(*node.value);
  if (const MarkedText* text = value.text()) {
    emit(*text);
  } else {
    runtime_.spend(weight_of(value));
    emit(runtime_.to_text(value));
  }
  return Flow::next;
}

Interpreter::Flow Interpreter::execute(const If& node) {
  for (const auto& [condition, body] : node.branches) {
    if (truth(evaluate(*condition))) return execute(body);
  }
  return execute(node.otherwise);
}

std::shared_ptr<Scope> Interpreter::inner_scope() const { return std::make_shared<Scope>(Scope{scope_, {}}); }

// The condition is asked of an item when the loop gets there, so that it sees what earlier iterations changed.
Value Interpreter::looped_over(const For& node) {
  Value iterable = evaluate(*node.iterable);
  if (!node.condition) return iterable;
  return runtime_.generator([this, &node, iterable, outer = scope_]() -> Generator::Next {
    return [this, &node, outer, items = Iterator(runtime_, iterable)]() mutable {
      const std::shared_ptr<Scope> inner = scope_;
      std::optional<Value> item;
      bool kept = false;
      while (!kept && (item = items.next())) {
        scope_ = std::make_shared<Scope>(Scope{outer, {}});
        assign(node.target, *item);
        kept = truth(evaluate(*node.condition));
      }
      scope_ = inner;
      return item;
    };
  });
}

Interpreter::Flow Interpreter::execute(const For& node) {
  const auto loop = std::make_shared<LoopState>(runtime_, looped_over(node));
  const std::size_t slot = loops_.size();
  loops_.push_back(loop);
  const std::shared_ptr<Scope> outer = scope_;
  bool ended_an_iteration = false;  // Jinja runs `else` where no iteration reached its end
  while (loop->advance()) {
    scope_ = std::make_shared<Scope>(Scope{outer, {}});
    scope_->names.emplace_back("loop", Value(loop));
    assign(node.target, loop->current());
    const Flow flow = execute(node.body);
    if (flow == Flow::stop_loop) break;
    if (flow == Flow::next) ended_an_iteration = true;
  }
  scope_ = outer;
  if (loop.use_count() == 2) {  // nothing else holds it
    loops_[slot] = loops_.back();
    loops_.pop_back();
  }
  if (ended_an_iteration || node.otherwise.empty()) return Flow::next;
  scope_ = inner_scope();
  const Flow flow = execute(node.otherwise);
  scope_ = outer;
  return flow;
}

void Interpreter::assign_name(const std::string& name, Value value) {
  for (auto& [known, held] : scope_->names) {
    if (known == name) {
      held = std::move(value);
      return;
    }
  }
  runtime_.spend(scope_->names.size() / 16);
  scope_->names.emplace_back(name, std::move(value));
}

void Interpreter::assign(const Target& target, const Value& value) {
  if (target.tuple) {
    const std::vector<Value> parts = runtime_.items(value);
    if (parts.size() != target.parts.size()) {
      wrong("expected {} values to unpack, got {}", target.parts.size(), parts.size());
    }
    for (std::size_t i = 0; i < parts.size(); ++i) assign(target.parts[i], parts[i]);
    return;
  }
  if (target.attribute.empty()) return assign_name(target.name, value);
  const Value space = evaluate(Name{target.name});
  const NamespacePtr* held = space.as<NamespacePtr>();
  if (held == nullptr) wrong("cannot assign attribute on non-namespace object {}", target.name);
  auto& attributes = (*held)->attributes;
  runtime_.spend(attributes.size() / 4);
  const auto known = std::find_if(attributes.begin(), attributes.end(),
                                  [&](const auto& entry) { return entry.first == target.attribute; });
  if (known != attributes.end()) {
    known->second = value;
  } else {
    attributes.emplace_back(target.attribute, value);
  }
}

Interpreter::Flow Interpreter::execute(const Set& node) {
  assign(node.target, evaluate(*node.value));
  return Flow::next;
}

MarkedText Interpreter::captured(const Body& body, std::shared_ptr<Scope> scope) {
  MarkedText text;
  MarkedText* const out = std::exchange(out_, &text);
  const std::shared_ptr<Scope> outer = std::exchange(scope_, std::move(scope));
  execute(body);
  scope_ = outer;
  out_ = out;
  return text;
}

Interpreter::Flow Interpreter::execute(const SetBlock& node) {
  Value text = runtime_.text(captured(node.body, inner_scope()));
  if (node.filter) {
    const TextPtr outer = std::exchange(block_text_, *text.as<TextPtr>());
    text = evaluate(*node.filter);
    block_text_ = outer;
  }
  assign(node.target, text);
  return Flow::next;
}

Interpreter::Flow Interpreter::execute(const FilterBlock& node) {
  const Value text = runtime_.text(captured(node.body, inner_scope()));
  const TextPtr outer = std::exchange(block_text_, *text.as<TextPtr>());
  emit(runtime_.to_text(evaluate(*node.filter)));
  block_text_ = outer;
  return Flow::next;
}

Value Interpreter::macro_value(const Macro& macro) {
  closures_.push_back(scope_);
  return Value(MacroValue{&macro, scope_});
}

Interpreter::Flow Interpreter::execute(const std::unique_ptr<Macro>& node) {
  assign_name(node->name, macro_value(*node));
  return Flow::next;
}

Interpreter::Flow Interpreter::execute(const CallBlock& node) {
  const Value caller = macro_value(*node.body);
  const Call& inner = std::get<Call>(node.call->node);
  const Value callee = evaluate(*inner.callee);
  emit(runtime_.to_text(call(callee, arguments_of({}, inner.arguments), &caller)));
  return Flow::next;
}

Interpreter::Flow Interpreter::execute(const With& node) {
  std::vector<Value> values;
  for (const auto& [target, expression] : node.variables) values.push_back(evaluate(*expression));
  const std::shared_ptr<Scope> outer = scope_;
  scope_ = inner_scope();
  for (std::size_t i = 0; i < values.size(); ++i) assign(node.variables[i].first, values[i]);
  const Flow flow = execute(node.body);
  scope_ = outer;
  return flow;
}

Interpreter::Flow Interpreter::execute(const Generation& node) {
  const std::shared_ptr<Scope> outer = scope_;
  scope_ = inner_scope();
  execute(node.body);
  scope_ = outer;
  return Flow::next;
}

}  // namespace tandem::jinja
