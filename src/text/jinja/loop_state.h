// The `loop` variable.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "src/text/jinja/value.h"

namespace tandem::jinja {

struct LoopState {
  std::vector<Value> items;
  std::size_t index = 0;                           // from 0
  std::optional<std::vector<Value>> last_changed;  // what `changed` was asked about last
};

// loop.name; nothing for a name that it does not have.
std::optional<Value> loop_attribute(const LoopState& loop, const std::string& name);

}  // namespace tandem::jinja
