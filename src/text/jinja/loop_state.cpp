#include "src/text/jinja/loop_state.h"

namespace tandem::jinja {

std::optional<Value> loop_attribute(const LoopState& loop, const std::string& name) {
  const auto index = static_cast<std::int64_t>(loop.index), length = static_cast<std::int64_t>(loop.items.size());
  if (name == "index") return Value(index + 1);
  if (name == "index0") return Value(index);
  if (name == "revindex") return Value(length - index);
  if (name == "revindex0") return Value(length - index - 1);
  if (name == "length") return Value(length);
  if (name == "first") return Value(index == 0);
  if (name == "last") return Value(index + 1 == length);
  if (name == "depth") return Value(std::int64_t{1});
  if (name == "depth0") return Value(std::int64_t{0});
  if (name == "previtem") return index == 0 ? undefined("there is no previous item") : loop.items[loop.index - 1];
  if (name == "nextitem") return index + 1 == length ? undefined("there is no next item") : loop.items[loop.index + 1];
  return std::nullopt;
}

}  // namespace tandem::jinja
