// Python's operators, subscripts and slices.
#pragma once
#include "src/text/jinja/ast.h"
#include "src/text/jinja/runtime.h"

namespace tandem::jinja {

Value binary(Runtime& runtime, BinaryOp op, const Value& left, const Value& right);
Value negative(const Value& value);
bool compare(Runtime& runtime, CompareOp op, const Value& left, const Value& right);

// object.name: what Python has under the name first, then what a dict holds; Undefined without either.
Value attribute(Runtime& runtime, const Value& object, const std::string& name);
// object[index], falling back to object.index for a string.
Value item(Runtime& runtime, const Value& object, const Value& index);
// object[start:stop:step]; null bounds are left out.
Value slice(Runtime& runtime, const Value& object, const Value* start, const Value* stop, const Value* step);
// item() for each part of a dotted path, as filters take it in `attribute`; `fallback`, where it is given, instead of
// what is undefined on the way.
Value path(Runtime& runtime, Value object, const Value& attribute, const Value* fallback = nullptr);

// dict.keys(), values() or items().
Value dict_view(Runtime& runtime, const Dict& dict, SequenceKind kind);

// A method of a string, list or dict, called.
Value call_method(Runtime& runtime, const Value& self, const std::string& name, const Arguments& arguments);

}  // namespace tandem::jinja
