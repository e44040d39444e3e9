// Which keywords of JSON schema are supported, and the strict reading of their values.
#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace tandem {

// Checks that `schema` at `pointer` is true, false or an object of supported keywords whose values have the right form;
// subschemas are checked when they are met. Throws Error(config) that names the keyword's pointer.
void check_keywords(const nlohmann::ordered_json& schema, const std::string& pointer);

// Whether `keyword` says nothing about which values are valid: title, description, $defs and the like.
bool is_annotation(std::string_view keyword);

// `name` as one step of a JSON pointer: "~" as "~0", "/" as "~1".
std::string pointer_step(std::string_view name);

}  // namespace tandem
