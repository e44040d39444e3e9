// Items one after another, as Python's iterators and generators give them.
#pragma once
#include <functional>
#include <optional>

#include "src/text/jinja/runtime.h"

namespace tandem::jinja {

// What a lazy filter returned: makes an item when it is asked for, and gives it once.
class Generator {
 public:
  using Next = std::function<std::optional<Value>()>;  // nothing at the end
  using Begin = std::function<Next()>;                 // runs when the first item is asked for; null: there is none

  Generator(Runtime& runtime, Begin begin) : runtime_(runtime), begin_(std::move(begin)) {}

  // Nothing at the end and ever after. Throws Problem where it needs its own next item to make one.
  std::optional<Value> next();
  // Lets go of all that it holds, as its end does.
  void release();

 private:
  Runtime& runtime_;
  Begin begin_;
  Next next_;
  bool running_ = false, over_ = false;
};

// Walks any value that Python can iterate.
class Iterator {
 public:
  // Throws Problem for what cannot be iterated.
  Iterator(Runtime& runtime, Value value);
  std::optional<Value> next();

 private:
  Runtime* runtime_;
  Value value_;
  std::vector<std::size_t> starts_;  // of a text's characters
  std::size_t at_ = 0;
};

// len(value); nothing where it has none.
std::optional<std::int64_t> length_of(Runtime& runtime, const Value& value);

}  // namespace tandem::jinja
