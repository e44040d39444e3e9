// The values of a template's expressions: Python's, as far as chat templates use them.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "src/base/error.h"
#include "src/text/jinja/marked_text.h"

namespace tandem::jinja {

class Value;
class Generator;
struct Scope;
struct Macro;
class LoopState;

struct Undefined {
  std::shared_ptr<const std::string> why;  // for the error of its use, e.g. "'tools' is undefined"
};
struct None {};

// Text that `safe` or `escape` returned, which escapes what it is added to; it may be printed, tested and added alone.
struct Markup {
  std::shared_ptr<const MarkedText> text;
};

enum class SequenceKind { list, tuple, keys, values, items, range };

// Never changed once made.
struct Sequence {
  SequenceKind kind = SequenceKind::list;
  std::vector<Value> items;
  std::string label;       // range: how Python prints it
  int depth = 1;           // levels of nesting, itself included
  std::size_t weight = 1;  // what it costs to walk: all that it holds, at every level
};

struct Dict {
  std::vector<std::pair<Value, Value>> entries;  // in order of insertion
  int depth = 1;
  std::size_t weight = 1;
};

struct Namespace {
  std::vector<std::pair<std::string, Value>> attributes;
};

// A macro, or the body of a call block, with the scope it was defined in.
struct MacroValue {
  const Macro* macro;
  std::shared_ptr<Scope> closure;
};

enum class Builtin { range, dict, make_namespace, raise_exception, strftime_now, unsupported };

struct Function {
  Builtin builtin;
  const char* name;
};

// A method of a value, not yet called.
struct Method {
  std::shared_ptr<const Value> self;
  std::string name;
};

using TextPtr = std::shared_ptr<const MarkedText>;
using SequencePtr = std::shared_ptr<const Sequence>;
using DictPtr = std::shared_ptr<const Dict>;
using GeneratorPtr = std::shared_ptr<Generator>;
using NamespacePtr = std::shared_ptr<Namespace>;
using LoopPtr = std::shared_ptr<LoopState>;

class Value {
 public:
  using Data = std::variant<Undefined, None, bool, std::int64_t, double, TextPtr, Markup, SequencePtr, DictPtr,
                            GeneratorPtr, NamespacePtr, MacroValue, Function, Method, LoopPtr>;

  Value() : data_(Undefined{}) {}
  template <typename T>
  explicit Value(T data) : data_(std::move(data)) {}

  template <typename T>
  bool is() const {
    return std::holds_alternative<T>(data_);
  }
  template <typename T>
  const T* as() const {
    return std::get_if<T>(&data_);
  }
  const Data& data() const { return data_; }

  const MarkedText* text() const { return is<TextPtr>() ? as<TextPtr>()->get() : nullptr; }
  const Sequence* sequence() const { return is<SequencePtr>() ? as<SequencePtr>()->get() : nullptr; }
  const Dict* dict() const { return is<DictPtr>() ? as<DictPtr>()->get() : nullptr; }
  Generator* generator() const { return is<GeneratorPtr>() ? as<GeneratorPtr>()->get() : nullptr; }

 private:
  Data data_;
};

// A render that cannot go on. The interpreter adds the line and makes it an Error of this kind.
class Problem : public Error {
 public:
  using Error::Error;
};

// These messages do not fit this template, e.g. a variable that is undefined.
template <typename... Args>
[[noreturn]] void wrong(fmt::format_string<Args...> format, Args&&... args) {
  throw Problem(ErrorKind::input, fmt::format(format, std::forward<Args>(args)...));
}

// The template asks for something that this interpreter does not do.
template <typename... Args>
[[noreturn]] void unsupported(fmt::format_string<Args...> format, Args&&... args) {
  throw Problem(ErrorKind::model, fmt::format(format, std::forward<Args>(args)...));
}

Value undefined(std::string why);
Value literal(std::string bytes);           // text of the template's own
const char* type_name(const Value& value);  // Python's
int depth_of(const Value& value);           // levels of lists and dicts; 0 for anything else
std::size_t weight_of(const Value& value);  // steps that it costs to compare, print or copy; at least 1

bool hashable(const Value& value);     // whether a dict can have it as a key
bool is_number(const Value& value);    // bool, int or float
double number_of(const Value& value);  // of a number
bool is_integer(const Value& value);   // bool or int
std::int64_t integer_of(const Value& value);

// Python's bool(value).
bool truth(const Value& value);
// What a dict holds under `key`; null without it.
const Value* find(const Dict& dict, const Value& key);
const Value* find(const Dict& dict, std::string_view key);

}  // namespace tandem::jinja
