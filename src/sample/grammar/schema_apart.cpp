#include "src/sample/grammar/schema_apart.h"

#include <algorithm>

#include "src/base/error.h"
#include "src/sample/grammar/schema_shape.h"

namespace tandem {
namespace {

constexpr int kDeepest = 8;
constexpr int kMostSteps = 20'000;  // of the proof for one oneOf

class EmptinessProof {
 public:
  explicit EmptinessProof(SchemaDocument& document) : document_(document) {}

  // Whether it is plain that no value satisfies all of `all` and what the subschemas `beside` say apart from the
  // schemas that they refer to; false when that is not seen within the limits.
  bool none_satisfies(const Conjunction& all, int depth, const Conjunction& beside = {}) {
    if (depth > kDeepest || ++steps_ > kMostSteps) return false;
    std::vector<Conjunction> alternatives = document_.alternatives(all);
    return std::all_of(alternatives.begin(), alternatives.end(), [&](Conjunction& alternative) {
      alternative.insert(alternative.end(), beside.begin(), beside.end());
      return is_empty(shape_of(document_, alternative), depth);
    });
  }

 private:
  bool is_empty(const Shape& shape, int depth) {
    if (shape.values) {
      return std::all_of(shape.values->begin(), shape.values->end(), [&](const auto& value) {
        return !admits(shape, value).value_or(true) || excludes(shape, value, depth);
      });
    }
    if ((shape.types & (kNullType | kBooleanType)) != 0) return false;
    if ((shape.types & kNumberTypes) != 0 && has_numbers(shape)) return false;
    if ((shape.types & kStringType) != 0 && fits(shape.length)) return false;
    if ((shape.types & kArrayType) != 0 && !no_array(shape, depth)) return false;
    return (shape.types & kObjectType) == 0 || no_object(shape, depth);
  }

  // Whether the rest of `shape` excludes one array or object of enum or const.
  bool excludes(const Shape& shape, const nlohmann::ordered_json& value, int depth) {
    return (type_of(value) == kArrayType && no_array(shape, depth)) ||
           (type_of(value) == kObjectType && no_object(shape, depth));
  }

  static bool fits(TextLength counts) { return counts.most < 0 || counts.least <= counts.most; }

  static bool has_numbers(const Shape& shape) {
    const auto& [minimum, maximum, multiple_of, whole] = shape.numbers;
    if (!minimum || !maximum) return true;
    if (whole) {
      WholeNumber low = ceiling_scaled(minimum->value, 0), high = floor_scaled(maximum->value, 0);
      if (minimum->exclusive && minimum->value.is_whole()) low = increased(low);
      if (maximum->exclusive && maximum->value.is_whole()) high = decreased(high);
      return compare(low, high) <= 0;
    }
    const int order = compare(minimum->value, maximum->value);
    return order < 0 || (order == 0 && !minimum->exclusive && !maximum->exclusive);
  }

  bool no_array(const Shape& shape, int depth) {
    if (!fits(shape.items)) return true;
    const ArrayItems items = items_of(document_, shape);
    const auto first = static_cast<std::int64_t>(items.first.size());
    for (std::int64_t i = 0; i < std::min(first, shape.items.least); ++i) {
      if (none_satisfies(items.first[static_cast<std::size_t>(i)], depth + 1)) return true;
    }
    return shape.items.least > first && none_satisfies(items.others, depth + 1);
  }

  bool no_object(const Shape& shape, int depth) {
    const auto required = static_cast<std::int64_t>(shape.required.size());
    if (!fits(shape.properties) || (shape.properties.most >= 0 && required > shape.properties.most)) return true;
    const ObjectMembers members = members_of(document_, shape);
    const auto named = static_cast<std::int64_t>(members.named.size());
    if (!members.has_others && named < shape.properties.least) return true;
    return std::any_of(members.named.begin(), members.named.end(), [&](const ObjectMembers::Member& member) {
      return member.required && none_satisfies(member.value, depth + 1);
    });
  }

  SchemaDocument& document_;
  int steps_ = 0;
};

}  // namespace

void require_branches_apart(SchemaDocument& document, int node) {
  EmptinessProof proof(document);
  const std::size_t count = document.schema(node).at("oneOf").size();
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t j = i + 1; j < count; ++j) {
      const Conjunction both{document.child(node, "oneOf", i), document.child(node, "oneOf", j)};
      if (proof.none_satisfies(both, 0, {node})) continue;
      fail(ErrorKind::config,
           "{}/oneOf: one value may satisfy both branch {} and branch {}; expected branches that types, constants, "
           "bounds or a required property tell apart, or anyOf",
           document.pointer(node), i, j);
    }
  }
}

}  // namespace tandem
