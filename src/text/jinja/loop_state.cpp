#include "src/text/jinja/loop_state.h"

#include <algorithm>

#include "src/text/jinja/compare.h"

namespace tandem::jinja {

LoopState::LoopState(Runtime& runtime, Value iterable)
    : runtime_(runtime), iterable_(std::move(iterable)), items_(Iterator(runtime, iterable_)) {}

bool LoopState::advance() {
  std::optional<Value> next = ahead();
  if (!next) return false;
  ahead_.reset();
  before_ = std::exchange(current_, std::move(next));
  ++index_;
  return true;
}

void LoopState::release() {
  iterable_ = Value();
  items_.reset();
  before_.reset();
  current_.reset();
  ahead_.reset();
  last_changed_.reset();
}

const std::optional<Value>& LoopState::ahead() {
  if (!ahead_ && items_) ahead_ = items_->next();
  return ahead_;
}

// Without a length of its own, what is left is made into a list.
std::int64_t LoopState::length() {
  if (!length_) length_ = length_of(runtime_, iterable_);
  if (!length_ && items_) {
    std::vector<Value> rest;
    while (std::optional<Value> item = items_->next()) rest.push_back(std::move(*item));
    length_ = static_cast<std::int64_t>(rest.size()) + index_ + 1 + (ahead_ ? 1 : 0);
    items_.emplace(runtime_, runtime_.list(std::move(rest)));
  }
  return length_.value_or(0);
}

std::optional<Value> LoopState::attribute(const std::string& name) {
  if (name == "index") return Value(index_ + 1);
  if (name == "index0") return Value(index_);
  if (name == "revindex") return Value(length() - index_);
  if (name == "revindex0") return Value(length() - index_ - 1);
  if (name == "length") return Value(length());
  if (name == "first") return Value(index_ == 0);
  if (name == "last") return Value(!ahead());
  if (name == "depth") return Value(std::int64_t{1});
  if (name == "depth0") return Value(std::int64_t{0});
  if (name == "previtem") return index_ == 0 ? undefined("there is no previous item") : *before_;
  if (name == "nextitem") return ahead() ? *ahead() : undefined("there is no next item");
  return std::nullopt;
}

Value LoopState::cycle(const std::vector<Value>& values) const {
  if (values.empty()) wrong("loop.cycle: no items for cycling given");
  return values[static_cast<std::size_t>(index_) % values.size()];
}

Value LoopState::changed(const std::vector<Value>& values) {
  const bool same =
      last_changed_ && std::equal(values.begin(), values.end(), last_changed_->begin(), last_changed_->end(), equal);
  last_changed_ = values;
  return Value(!same);
}

}  // namespace tandem::jinja
