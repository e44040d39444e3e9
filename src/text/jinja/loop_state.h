// The `loop` variable.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "src/text/jinja/iteration.h"

namespace tandem::jinja {

// Goes over a value as far as it must: only what asks for the end or for what comes next looks ahead.
class LoopState {
 public:
  // Throws Problem for what cannot be iterated.
  LoopState(Runtime& runtime, Value iterable);

  // To the next item, if there is one.
  bool advance();
  const Value& current() const { return *current_; }
  // Lets go of all that it holds.
  void release();

  // loop.name; nothing for a name that it does not have.
  std::optional<Value> attribute(const std::string& name);
  // loop.cycle(...) and loop.changed(...).
  Value cycle(const std::vector<Value>& values) const;
  Value changed(const std::vector<Value>& values);

 private:
  const std::optional<Value>& ahead();
  std::int64_t length();

  Runtime& runtime_;
  Value iterable_;
  std::optional<Iterator> items_;  // nothing once released
  std::int64_t index_ = -1;        // from 0
  std::optional<Value> before_, current_, ahead_;
  std::optional<std::int64_t> length_;
  std::optional<std::vector<Value>> last_changed_;
};

}  // namespace tandem::jinja
