#include "src/text/jinja/iteration.h"

#include <utility>

namespace tandem::jinja {

std::optional<Value> Generator::next() {
  if (over_) return std::nullopt;
  if (running_) wrong("a generator needs its own next item to make one");
  const Runtime::Nested nested(runtime_);
  running_ = true;
  if (begin_) next_ = std::exchange(begin_, nullptr)();
  std::optional<Value> item = next_ ? next_() : std::nullopt;
  running_ = false;
  if (!item) release();
  return item;
}

void Generator::release() {
  over_ = true;
  begin_ = nullptr;
  next_ = nullptr;
}

Iterator::Iterator(Runtime& runtime, Value value) : runtime_(&runtime), value_(std::move(value)) {
  if (const MarkedText* text = value_.text()) {
    starts_ = character_starts(text->bytes());
    runtime.spend(starts_.size() / 8);
    return;
  }
  if (value_.is<Markup>() || value_.is<LoopPtr>()) unsupported("a loop over a {} is not supported", type_name(value_));
  if (value_.sequence() == nullptr && value_.dict() == nullptr && value_.generator() == nullptr &&
      !value_.is<Undefined>()) {
    wrong("a value of type {} is not iterable", type_name(value_));
  }
}

std::optional<Value> Iterator::next() {
  runtime_->spend(1);
  if (Generator* generator = value_.generator()) return generator->next();
  if (const Sequence* sequence = value_.sequence()) {
    if (at_ < sequence->items.size()) return sequence->items[at_++];
  } else if (const Dict* dict = value_.dict()) {
    if (at_ < dict->entries.size()) return dict->entries[at_++].first;
  } else if (const MarkedText* text = value_.text(); text != nullptr && at_ + 1 < starts_.size()) {
    ++at_;
    return runtime_->text(text->slice(starts_[at_ - 1], starts_[at_]));
  }
  return std::nullopt;
}

std::optional<std::int64_t> length_of(Runtime& runtime, const Value& value) {
  if (const MarkedText* text = value.text()) {
    runtime.spend(text->size() / 64);
    return static_cast<std::int64_t>(count_characters(text->bytes()));
  }
  if (const Dict* dict = value.dict()) return static_cast<std::int64_t>(dict->entries.size());
  if (const Sequence* sequence = value.sequence()) return static_cast<std::int64_t>(sequence->items.size());
  if (value.is<Undefined>()) return 0;
  return std::nullopt;
}

}  // namespace tandem::jinja
