// The interpreter's calls: macros, and the functions that every template has.
#include <algorithm>
#include <array>

#include "src/text/jinja/interpreter.h"
#include "src/text/jinja/operators.h"

namespace tandem::jinja {
namespace {

// Macros name themselves in their errors.
std::string name_of(const Value& callee) {
  if (const Function* function = callee.as<Function>()) return function->name;
  if (const Method* method = callee.as<Method>()) return method->name;
  return {};
}

}  // namespace

Arguments Interpreter::arguments_of(std::string callee, const CallArguments& given) {
  Arguments arguments{.callee = std::move(callee), .positional = {}, .named = {}};
  for (const auto& argument : given.positional) arguments.positional.push_back(evaluate(*argument));
  for (const auto& [name, argument] : given.named) arguments.named.emplace_back(name, evaluate(*argument));
  if (given.star) {
    for (Value& value : runtime_.items(evaluate(*given.star))) arguments.positional.push_back(std::move(value));
  }
  if (!given.star_star) return arguments;
  const Value named = evaluate(*given.star_star);
  if (named.dict() == nullptr) wrong("argument after ** must be a mapping, not {}", type_name(named));
  for (const auto& [key, value] : named.dict()->entries) {
    if (key.text() == nullptr) wrong("keywords must be strings");
    for (const auto& [known, other] : arguments.named) {
      if (known == key.text()->bytes()) wrong("argument {} is given twice", known);
    }
    arguments.named.emplace_back(key.text()->bytes(), value);
  }
  return arguments;
}

Value Interpreter::evaluate(const Call& node) {
  const Value callee = evaluate(*node.callee);
  const Arguments arguments = arguments_of(name_of(callee), node.arguments);
  return call(callee, arguments, nullptr);
}

Value Interpreter::call(const Value& callee, const Arguments& arguments, const Value* caller) {
  if (const MacroValue* macro = callee.as<MacroValue>()) return call_macro(*macro, arguments, caller);
  if (caller != nullptr) unsupported("a call block of anything but a macro is not supported");
  if (const Function* function = callee.as<Function>()) return call_function(*function, arguments);
  if (const Method* method = callee.as<Method>()) return call_method(runtime_, *method->self, method->name, arguments);
  if (const Undefined* missing = callee.as<Undefined>())
    wrong("{}", missing->why ? *missing->why : "a value is undefined");
  wrong("a value of type {} cannot be called", type_name(callee));
}

void Interpreter::bind_parameters(const Macro& macro, const Arguments& arguments, const Value* caller) {
  const std::size_t size = macro.parameters.size();
  if (arguments.positional.size() > size && !macro.uses_varargs) {
    wrong("macro {} takes not more than {} argument(s)", macro.name, size);
  }
  std::vector<bool> used(arguments.named.size(), false);
  for (std::size_t i = 0; i < size; ++i) {
    const Parameter& parameter = macro.parameters[i];
    if (i < arguments.positional.size()) {
      assign_name(parameter.name, arguments.positional[i]);
      continue;
    }
    const auto named = std::find_if(arguments.named.begin(), arguments.named.end(),
                                    [&](const auto& entry) { return entry.first == parameter.name; });
    if (named != arguments.named.end()) {
      used[static_cast<std::size_t>(named - arguments.named.begin())] = true;
      assign_name(parameter.name, named->second);
    } else if (parameter.fallback) {
      assign_name(parameter.name, evaluate(*parameter.fallback));
    } else {
      assign_name(parameter.name, undefined(fmt::format("parameter '{}' was not provided", parameter.name)));
    }
  }
  std::vector<std::pair<Value, Value>> rest;
  for (std::size_t i = 0; i < arguments.named.size(); ++i) {
    if (used[i]) continue;
    if (!macro.uses_kwargs) wrong("macro {} takes no keyword argument {}", macro.name, arguments.named[i].first);
    rest.emplace_back(literal(arguments.named[i].first), arguments.named[i].second);
  }
  if (macro.uses_kwargs) assign_name("kwargs", runtime_.dict(std::move(rest)));
  if (macro.uses_varargs) {
    const auto first =
        arguments.positional.begin() + static_cast<std::ptrdiff_t>(std::min(size, arguments.positional.size()));
    assign_name("varargs", runtime_.list({first, arguments.positional.end()}, SequenceKind::tuple));
  }
  if (caller != nullptr && !macro.uses_caller) wrong("macro {} takes no keyword argument caller", macro.name);
  if (macro.uses_caller) assign_name("caller", caller != nullptr ? *caller : undefined("No caller defined"));
}

Value Interpreter::call_macro(const MacroValue& macro, const Arguments& arguments, const Value* caller) {
  const std::shared_ptr<Scope> outer = scope_;
  const TextPtr block = block_text_;
  scope_ = std::make_shared<Scope>(Scope{macro.closure, {}});
  bind_parameters(*macro.macro, arguments, caller);
  Value text = runtime_.text(captured(macro.macro->body, scope_));
  scope_ = outer;
  block_text_ = block;
  return text;
}

Value Interpreter::call_function(const Function& function, const Arguments& arguments) {
  switch (function.builtin) {
    case Builtin::range:
      return make_range(arguments);
    case Builtin::dict:
      return make_dict(arguments);
    case Builtin::make_namespace:
      return make_namespace(arguments);
    case Builtin::strftime_now:
      return strftime_now(arguments);
    case Builtin::raise_exception: {
      const Parameters given(arguments, {"message"}, 1);
      wrong("the template refuses these messages: {}", runtime_.to_text(given[0]).bytes());
    }
    case Builtin::unsupported:
      break;
  }
  unsupported("function {} is not supported", function.name);
}

Value Interpreter::make_range(const Arguments& arguments) {
  const Parameters given(arguments, {"start", "stop", "step"}, 1);
  if (!arguments.named.empty()) wrong("range takes no keyword arguments");
  const bool one = !given.has(1);
  const std::int64_t start = one ? 0 : given.integer_or(0, 0), stop = given.integer_or(one ? 0 : 1, 0);
  const std::int64_t step = given.integer_or(2, 1);
  if (step == 0) wrong("range: step must not be zero");
  constexpr double kLongest = 100000;  // as in Jinja's sandbox
  const double length = (static_cast<double>(stop) - static_cast<double>(start)) / static_cast<double>(step);
  if (length > kLongest) wrong("range: expected at most {} numbers", kLongest);
  std::vector<Value> items;
  for (std::int64_t i = 0; static_cast<double>(i) < length; ++i) items.emplace_back(start + i * step);
  std::string label =
      step == 1 ? fmt::format("range({}, {})", start, stop) : fmt::format("range({}, {}, {})", start, stop, step);
  return runtime_.range(std::move(items), std::move(label));
}

Value Interpreter::make_dict(const Arguments& arguments) {
  std::vector<std::pair<Value, Value>> entries;
  if (arguments.positional.size() > 1) wrong("dict: expected at most 1 argument, got {}", arguments.positional.size());
  for (const Value& from : arguments.positional) {
    if (from.dict() != nullptr) {
      entries = from.dict()->entries;
      continue;
    }
    for (const Value& entry : runtime_.items(from)) {
      const std::vector<Value> pair = runtime_.items(entry);
      if (pair.size() != 2) wrong("dict: expected pairs, got {} values", pair.size());
      entries.emplace_back(pair[0], pair[1]);
    }
  }
  for (const auto& [name, value] : arguments.named) entries.emplace_back(literal(name), value);
  return runtime_.dict(std::move(entries));
}

Value Interpreter::make_namespace(const Arguments& arguments) {
  const Value entries = make_dict(arguments);
  auto space = std::make_shared<Namespace>();
  for (const auto& [key, value] : entries.dict()->entries) {
    if (key.text() == nullptr) unsupported("namespace: keys that are no strings are not supported");
    space->attributes.emplace_back(key.text()->bytes(), value);
  }
  namespaces_.push_back(space);
  return Value(std::move(space));
}

Value Interpreter::strftime_now(const Arguments& arguments) {
  const Parameters given(arguments, {"format"}, 1);
  const std::string& format = given.text(0).bytes();
  if (format.size() > 200) unsupported("strftime_now: expected a format of at most 200 bytes, got {}", format.size());
  for (std::size_t i = format.find('%'); i != std::string::npos; i = format.find('%', i + 2)) {
    const char c = i + 1 < format.size() ? format[i + 1] : ' ';
    if (std::string_view("aAbBdHIjmMpSyY%").find(c) == std::string_view::npos) {
      unsupported("strftime_now: %{} is not supported", c);
    }
  }
  const std::tm now = runtime_.now();
  std::array<char, 4096> text{};
  const std::size_t size = std::strftime(text.data(), text.size(), format.c_str(), &now);
  return runtime_.text(MarkedText(std::string(text.data(), size), false));
}

}  // namespace tandem::jinja
