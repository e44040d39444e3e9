// What one render may use, and how its values come to be.
#pragma once
#include <cstdint>
#include <ctime>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/text/jinja/value.h"

namespace tandem::jinja {

// Templates come inside model files, so whatever one does ends: beyond a limit the render is an Error(model).
struct Limits {
  std::size_t steps = 5'000'000;         // expressions evaluated, and items and 64-byte pieces of text looked at
  std::size_t text_bytes = 64u << 20;    // of all texts made on the way
  std::size_t output_bytes = 64u << 20;  // of the rendered text
  int depth = 1000;                      // expressions and statements inside one another, calls included
  int value_depth = 100;                 // lists and dicts inside one another; generators that ask one another
};

// The time that `strftime_now` formats.
using Clock = std::function<std::tm()>;

class Runtime {
 public:
  Runtime(const Limits& limits, Clock clock) : limits_(limits), clock_(std::move(clock)) {}
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  // One generator that runs inside another. Throws Problem for too many.
  class Nested {
   public:
    explicit Nested(Runtime& runtime);
    ~Nested() { --runtime_.running_generators_; }
    Nested(const Nested&) = delete;
    Nested& operator=(const Nested&) = delete;

   private:
    Runtime& runtime_;
  };

  // Counts work; throws Problem past the limit.
  void spend(std::size_t steps);
  void spend_output(std::size_t bytes);
  // For a search of `part` in `text`.
  void spend_search(const MarkedText& text, const MarkedText& part);
  // Throws Problem for a text that grows beyond what one may be.
  void require_text(std::size_t bytes) const;

  Value text(MarkedText text);
  Value list(std::vector<Value> items, SequenceKind kind = SequenceKind::list);
  Value range(std::vector<Value> items, std::string label);
  // Gives the items that the function which `begin` returns makes; see iteration.h.
  Value generator(std::function<std::function<std::optional<Value>()>()> begin);
  // Later entries replace earlier ones of the same key, which keep their place.
  Value dict(std::vector<std::pair<Value, Value>> entries);

  // ' ' * count. Throws Problem, naming the filter that asks for them, for too many.
  static MarkedText blanks(std::string_view filter, std::int64_t count);
  // The items that a loop over `value` sees; a generator is used up. Throws Problem for what cannot be iterated.
  std::vector<Value> items(const Value& value);
  // str(value), and repr(value) in `quoted`.
  MarkedText to_text(const Value& value);
  MarkedText quoted(const Value& value);

  std::tm now() const { return clock_(); }
  const Limits& limits() const { return limits_; }

 private:
  const Limits& limits_;
  Clock clock_;
  std::size_t steps_ = 0, text_bytes_ = 0, output_bytes_ = 0;
  int running_generators_ = 0;
  std::vector<GeneratorPtr> generators_;  // all: one could hold itself, or a long chain of others
};

// The arguments of a call, evaluated.
struct Arguments {
  std::string callee;  // the filter, test, method or function that they are given to, for errors
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

// Arguments, which outlive this, matched with the parameters of something built in. Throws Problem for too many,
// unknown or missing ones.
class Parameters {
 public:
  Parameters(const Arguments& arguments, std::initializer_list<std::string_view> names, std::size_t required = 0);

  bool has(std::size_t i) const { return values_[i] != nullptr; }
  const Value& operator[](std::size_t i) const { return *values_[i]; }
  Value value_or_none(std::size_t i) const { return has(i) ? *values_[i] : Value(None{}); }
  bool truth_or(std::size_t i, bool fallback) const { return has(i) ? truth(*values_[i]) : fallback; }
  // Throw Problem, naming the parameter, for a value of another type.
  std::int64_t integer_or(std::size_t i, std::int64_t fallback) const;
  const MarkedText& text(std::size_t i) const;

 private:
  std::string_view callee_;
  std::vector<std::string_view> names_;
  std::vector<const Value*> values_;
};

}  // namespace tandem::jinja
