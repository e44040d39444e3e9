#include "src/sample/grammar/schema_document.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "src/base/error.h"
#include "src/sample/grammar/schema_keywords.h"

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kDeepest = 64;
constexpr std::size_t kMostBytes = std::size_t{1} << 20;
constexpr std::size_t kMostAlternatives = 256;
constexpr std::size_t kMostTogether = 1000;  // schemas that one value must satisfy
constexpr std::size_t kMostOpen = 200;       // references and lists followed inside each other

bool deeper_than(const Json& value, int limit) {
  if (!value.is_structured()) return false;
  return limit == 0 ||
         std::any_of(value.begin(), value.end(), [limit](const Json& part) { return deeper_than(part, limit - 1); });
}

int hex_digit(char byte) {
  int value = -1;
  std::from_chars(&byte, &byte + 1, value, 16);
  return value;
}

// The text of a URI fragment: %25 is "%".
std::string percent_decoded(std::string_view text, const std::string& place) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    const int high = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1, low = high < 0 ? -1 : hex_digit(text[i + 2]);
    if (low < 0) fail(ErrorKind::config, "{}: expected two hexadecimal digits after %, in '{}'", place, text);
    decoded += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return decoded;
}

// One step of a JSON pointer, or nullopt when a ~ is followed by neither 0 nor 1.
std::optional<std::string> step_text(std::string_view step) {
  std::string text;
  for (std::size_t i = 0; i < step.size(); ++i) {
    if (step[i] != '~') {
      text += step[i];
    } else if (i + 1 < step.size() && (step[i + 1] == '0' || step[i + 1] == '1')) {
      text += step[++i] == '0' ? '~' : '/';
    } else {
      return std::nullopt;
    }
  }
  return text;
}

// What `step` leads to in `value`, or null.
const Json* part_of(const Json& value, const std::string& step) {
  if (value.is_object()) {
    const auto found = value.find(step);
    return found == value.end() ? nullptr : &*found;
  }
  std::size_t index = 0;
  const auto [end, error] = std::from_chars(step.data(), step.data() + step.size(), index);
  const bool is_index = error == std::errc() && end == step.data() + step.size() && (step == "0" || step[0] != '0');
  return value.is_array() && is_index && index < value.size() ? &value[index] : nullptr;
}

Conjunction merged(const Conjunction& left, const Conjunction& right) {
  Conjunction all = left;
  for (const int node : right) {
    if (std::find(all.begin(), all.end(), node) == all.end()) all.push_back(node);
  }
  return all;
}

}  // namespace

SchemaDocument::SchemaDocument(const Json& root) : root_(root) {
  if (deeper_than(root, kDeepest)) fail(ErrorKind::config, "#: nested deeper than {}", kDeepest);
  std::size_t bytes = 0;
  try {
    bytes = root.dump().size();
  } catch (const Json::exception&) {
    fail(ErrorKind::config, "#: holds text that is not UTF-8");
  }
  if (bytes > kMostBytes) fail(ErrorKind::config, "#: {} bytes of text; at most {}", bytes, kMostBytes);
  intern("#", root);
}

int SchemaDocument::intern(std::string pointer, const Json& schema) {
  const auto [found, fresh] = by_pointer_.emplace(pointer, static_cast<int>(nodes_.size()));
  if (fresh) nodes_.push_back({&schema, std::move(pointer)});
  return found->second;
}

int SchemaDocument::child(int node, std::string_view keyword) {
  return intern(fmt::format("{}/{}", pointer(node), keyword), schema(node).at(std::string(keyword)));
}

int SchemaDocument::child(int node, std::string_view keyword, std::string_view name) {
  return intern(fmt::format("{}/{}/{}", pointer(node), keyword, pointer_step(name)),
                schema(node).at(std::string(keyword)).at(std::string(name)));
}

int SchemaDocument::child(int node, std::string_view keyword, std::size_t index) {
  return intern(fmt::format("{}/{}/{}", pointer(node), keyword, index),
                schema(node).at(std::string(keyword)).at(index));
}

void SchemaDocument::check(int node) {
  Node& checked = nodes_[static_cast<std::size_t>(node)];
  if (checked.checked) return;
  check_keywords(*checked.schema, checked.pointer);
  checked.checked = true;
}

int SchemaDocument::target_of(int node) {
  const std::string place = pointer(node) + "/$ref";
  const std::string& reference = schema(node).at("$ref").get_ref<const std::string&>();
  if (reference != "#" && reference.compare(0, 2, "#/") != 0) {
    fail(ErrorKind::config, "{}: '{}' is not supported: only references into the same document, as # or #/...", place,
         reference);
  }
  const std::string path = percent_decoded(std::string_view(reference).substr(1), place);
  const Json* at = &root_;
  std::string target = "#";
  for (std::size_t begin = 1; begin <= path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const std::optional<std::string> step = step_text(std::string_view(path).substr(begin, end - begin));
    at = step ? part_of(*at, *step) : nullptr;
    if (at == nullptr) fail(ErrorKind::config, "{}: there is no {} in the document", place, reference);
    target.append("/").append(pointer_step(*step));
    begin = end + 1;
  }
  return intern(std::move(target), *at);
}

Conjunction SchemaDocument::simplified(const Conjunction& all) {
  const auto says_something = [](const auto& item) { return !is_annotation(item.key()); };
  Conjunction result;
  for (int node : all) {
    bool anything = false;
    // A chain of more references than there are nodes runs in a circle, which alternatives() refuses by its pointer.
    for (std::size_t followed = 0; followed <= nodes_.size(); ++followed) {
      check(node);
      const Json& own = schema(node);
      if (!own.is_object()) {
        anything = own == Json(true);
        break;
      }
      int keywords = 0;
      for (const auto& item : own.items()) keywords += says_something(item) ? 1 : 0;
      anything = keywords == 0;
      if (keywords != 1 || !own.contains("$ref")) break;
      node = target_of(node);
    }
    if (!anything) result = merged(result, {node});
  }
  return result;
}

std::vector<Conjunction> SchemaDocument::product(int node, const std::vector<Conjunction>& left,
                                                 const std::vector<Conjunction>& right) const {
  require_few(node, left.size() * right.size());
  std::vector<Conjunction> both;
  for (const Conjunction& one : left) {
    for (const Conjunction& other : right) {
      both.push_back(merged(one, other));
      if (both.back().size() > kMostTogether) {
        fail(ErrorKind::config, "{}: more than {} schemas that must hold together", pointer(node), kMostTogether);
      }
    }
  }
  return both;
}

void SchemaDocument::require_few(int node, std::size_t alternatives) const {
  if (alternatives <= kMostAlternatives) return;
  fail(ErrorKind::config, "{}: {} combinations of alternatives; at most {}", pointer(node), alternatives,
       kMostAlternatives);
}

std::vector<Conjunction> SchemaDocument::alternatives_of_list(int node, std::string_view keyword,
                                                              std::vector<int>& open) {
  std::vector<Conjunction> all;
  for (std::size_t i = 0; i < schema(node).at(std::string(keyword)).size(); ++i) {
    for (const Conjunction& one : alternatives_of(child(node, keyword, i), open)) {
      if (std::find(all.begin(), all.end(), one) == all.end()) all.push_back(one);
    }
    require_few(node, all.size());
  }
  return all;
}

const std::vector<Conjunction>& SchemaDocument::alternatives_of(int node, std::vector<int>& open) {
  const auto known = alternatives_.find(node);
  if (known != alternatives_.end()) return known->second;
  if (std::find(open.begin(), open.end(), node) != open.end()) {
    fail(ErrorKind::config, "{}: refers to itself before any text, so that it says nothing", pointer(node));
  }
  if (open.size() == kMostOpen)
    fail(ErrorKind::config, "{}: {} references and lists in a row", pointer(node), kMostOpen);
  check(node);
  const Json& own = schema(node);
  open.push_back(node);
  std::vector<Conjunction> result;
  if (own.is_object()) {
    result = object_alternatives(node, open);
  } else if (own == Json(true)) {
    result = {{}};
  }
  open.pop_back();
  return alternatives_.emplace(node, std::move(result)).first->second;
}

std::vector<Conjunction> SchemaDocument::object_alternatives(int node, std::vector<int>& open) {
  const Json& own = schema(node);
  std::vector<Conjunction> result{{node}};
  if (own.contains("$ref")) result = product(node, result, alternatives_of(target_of(node), open));
  if (own.contains("allOf")) {
    for (std::size_t i = 0; i < own.at("allOf").size(); ++i) {
      result = product(node, result, alternatives_of(child(node, "allOf", i), open));
    }
  }
  for (const char* keyword : {"anyOf", "oneOf"}) {
    if (own.contains(keyword)) result = product(node, result, alternatives_of_list(node, keyword, open));
  }
  if (own.contains("oneOf")) one_ofs_.push_back(node);
  return result;
}

std::vector<Conjunction> SchemaDocument::alternatives(const Conjunction& all) {
  std::vector<Conjunction> result{{}};
  std::vector<int> open;
  for (const int node : all) result = product(node, result, alternatives_of(node, open));
  return result;
}

}  // namespace tandem
