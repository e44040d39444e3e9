#include "src/text/jinja/compare.h"

#include <algorithm>

#include "src/text/jinja/iteration.h"

namespace tandem::jinja {
namespace {

bool is_set(const Sequence& sequence) {
  return sequence.kind == SequenceKind::keys || sequence.kind == SequenceKind::items;
}

bool equal_sequences(const Sequence& a, const Sequence& b) {
  if (&a == &b) return true;
  if (is_set(a) && is_set(b)) {
    const auto in_b = [&](const Value& item) {
      return std::any_of(b.items.begin(), b.items.end(), [&](const Value& other) { return equal(item, other); });
    };
    return a.items.size() == b.items.size() && std::all_of(a.items.begin(), a.items.end(), in_b);
  }
  return a.kind == b.kind && a.kind != SequenceKind::values &&
         std::equal(a.items.begin(), a.items.end(), b.items.begin(), b.items.end(), equal);
}

bool equal_dicts(const Dict& a, const Dict& b) {
  if (a.entries.size() != b.entries.size()) return false;
  return std::all_of(a.entries.begin(), a.entries.end(), [&](const auto& entry) {
    const Value* other = find(b, entry.first);
    return other != nullptr && equal(entry.second, *other);
  });
}

int sign(auto a, auto b) { return a < b ? -1 : a > b ? 1 : a == b ? 0 : 2; }

int order_numbers(const Value& a, const Value& b) {
  if (is_integer(a) && is_integer(b)) return sign(integer_of(a), integer_of(b));
  return sign(number_of(a), number_of(b));
}

// The text of a value that compares as one.
const MarkedText* comparable_text(const Value& value) {
  if (const Markup* markup = value.as<Markup>()) return markup->text.get();
  return value.text();
}

}  // namespace

bool equal(const Value& a, const Value& b) {
  if (is_number(a) && is_number(b)) return order_numbers(a, b) == 0;
  const MarkedText *left = comparable_text(a), *right = comparable_text(b);
  if (left != nullptr && right != nullptr) return left->bytes() == right->bytes();
  if (a.data().index() != b.data().index()) return false;
  if (a.is<Undefined>() || a.is<None>()) return true;
  if (a.is<SequencePtr>()) return equal_sequences(*a.sequence(), *b.sequence());
  if (a.is<DictPtr>()) return equal_dicts(*a.dict(), *b.dict());
  if (a.is<GeneratorPtr>()) return a.generator() == b.generator();
  if (a.is<NamespacePtr>()) return *a.as<NamespacePtr>() == *b.as<NamespacePtr>();
  if (a.is<LoopPtr>()) return *a.as<LoopPtr>() == *b.as<LoopPtr>();
  unsupported("comparing two values of type {} is not supported", type_name(a));
}

int order(const Value& a, const Value& b) {
  if (is_number(a) && is_number(b)) return order_numbers(a, b);
  if (a.text() != nullptr && b.text() != nullptr) return sign(a.text()->bytes().compare(b.text()->bytes()), 0);
  const Sequence *left = a.sequence(), *right = b.sequence();
  const bool ordered = left != nullptr && right != nullptr && left->kind == right->kind &&
                       (left->kind == SequenceKind::list || left->kind == SequenceKind::tuple);
  if (!ordered) wrong("expected two numbers, texts or lists to compare, got {} and {}", type_name(a), type_name(b));
  const std::size_t common = std::min(left->items.size(), right->items.size());
  for (std::size_t i = 0; i < common; ++i) {
    if (!equal(left->items[i], right->items[i])) return order(left->items[i], right->items[i]);
  }
  return sign(left->items.size(), right->items.size());
}

bool contains(Runtime& runtime, const Value& haystack, const Value& needle) {
  if (const MarkedText* text = haystack.text()) {
    const MarkedText* part = needle.text();
    if (part == nullptr) wrong("'in <string>' requires string as left operand, got {}", type_name(needle));
    runtime.spend_search(*text, *part);
    return text->bytes().find(part->bytes()) != std::string::npos;
  }
  if (const Sequence* sequence = haystack.sequence()) {
    return std::any_of(sequence->items.begin(), sequence->items.end(),
                       [&](const Value& item) { return equal(item, needle); });
  }
  if (const Dict* dict = haystack.dict()) {
    if (!hashable(needle)) wrong("unhashable type: {}", type_name(needle));
    return find(*dict, needle) != nullptr;
  }
  if (haystack.generator() != nullptr) {
    for (Iterator items(runtime, haystack); std::optional<Value> item = items.next();) {
      runtime.spend(std::min(weight_of(*item), weight_of(needle)));
      if (equal(*item, needle)) return true;
    }
    return false;
  }
  if (haystack.is<Undefined>()) return false;
  wrong("argument of type {} is not iterable", type_name(haystack));
}

}  // namespace tandem::jinja
