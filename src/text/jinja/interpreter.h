// Runs a parsed template.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "src/text/jinja/loop_state.h"
#include "src/text/jinja/parser.h"
#include "src/text/jinja/runtime.h"

namespace tandem::jinja {

using Variables = std::vector<std::pair<std::string, Value>>;

struct Scope {
  std::shared_ptr<Scope> parent;
  Variables names;
};

class Interpreter {
 public:
  explicit Interpreter(Runtime& runtime) : runtime_(runtime) {}
  ~Interpreter();
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

  // The template's text with these variables. Throws Problem; place() says where.
  MarkedText run(const Body& body, Variables variables);
  Place place() const { return place_; }

 private:
  enum class Flow { next, stop_loop, next_iteration };
  class Entered;

  // Statements.
  Flow execute(const Body& body);
  Flow execute(const Data& node);
  Flow execute(const Print& node);
  Flow execute(const If& node);
  Flow execute(const For& node);
  Flow execute(const Set& node);
  Flow execute(const SetBlock& node);
  Flow execute(const std::unique_ptr<Macro>& node);
  Flow execute(const CallBlock& node);
  Flow execute(const FilterBlock& node);
  Flow execute(const With& node);
  Flow execute(const Generation& node);
  Flow execute(const Break&) { return Flow::stop_loop; }
  Flow execute(const Continue&) { return Flow::next_iteration; }

  Value looped_over(const For& node);
  void assign(const Target& target, const Value& value);
  void assign_name(const std::string& name, Value value);
  void emit(const MarkedText& text);
  // What `body` writes, in a scope of its own.
  MarkedText captured(const Body& body, std::shared_ptr<Scope> scope);
  std::shared_ptr<Scope> inner_scope() const;

  // Expressions.
  Value evaluate(const Expression& expression);
  Value evaluate(const Constant& node) { return node.value; }
  Value evaluate(const Name& node);
  Value evaluate(const ListDisplay& node);
  Value evaluate(const DictDisplay& node);
  Value evaluate(const Attribute& node);
  Value evaluate(const Subscript& node);
  Value evaluate(const Slice& node);
  Value evaluate(const Call& node);
  Value evaluate(const FilterCall& node);
  Value evaluate(const TestCall& node);
  Value evaluate(const Unary& node);
  Value evaluate(const Binary& node);
  Value evaluate(const Logic& node);
  Value evaluate(const Compare& node);
  Value evaluate(const Concat& node);
  Value evaluate(const Conditional& node);

  // Calls.
  Arguments arguments_of(std::string callee, const CallArguments& given);
  Value call(const Value& callee, const Arguments& arguments, const Value* caller);
  Value call_macro(const MacroValue& macro, const Arguments& arguments, const Value* caller);
  void bind_parameters(const Macro& macro, const Arguments& arguments, const Value* caller);
  Value call_function(const Function& function, const Arguments& arguments);
  Value make_range(const Arguments& arguments);
  Value make_dict(const Arguments& arguments);
  Value make_namespace(const Arguments& arguments);
  Value strftime_now(const Arguments& arguments);
  Value macro_value(const Macro& macro);

  Runtime& runtime_;
  Place place_;
  int depth_ = 0;
  MarkedText* out_ = nullptr;
  TextPtr block_text_;  // what the filters of a block are given
  std::shared_ptr<Scope> scope_;
  // What could hold itself, so that it is taken apart at the end.
  std::vector<NamespacePtr> namespaces_;
  std::vector<std::shared_ptr<Scope>> closures_;
  std::vector<LoopPtr> loops_;  // that run or that something still refers to
};

}  // namespace tandem::jinja
