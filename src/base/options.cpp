#include "src/base/options.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <set>

#include "src/base/error.h"
#include "src/base/yaml_tree.h"

namespace tandem {
namespace {

using Kind = YamlNode::Kind;

std::string integer_text(auto low, auto high) { return fmt::format("integer {}..{}", low, high); }

std::string shown_node(const YamlNode* node) {
  if (node == nullptr || node->kind == Kind::null) return "nothing";
  if (node->kind == Kind::scalar) return shown_text(node->text);
  return fmt::format("a {} of {}", node->kind == Kind::list ? "list" : "map", node->items.size());
}

void assign_source(YamlNode& node, int source) {
  node.source = source;
  for (YamlNode& item : node.items) assign_source(item, source);
}

std::vector<std::string_view> split_key(std::string_view key) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t dot = key.find('.');
    parts.push_back(key.substr(0, dot));
    if (dot == std::string_view::npos) return parts;
    key.remove_prefix(dot + 1);
  }
}

std::string read_file(const std::string& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::not_found) fail(ErrorKind::config, "{}: no such file", path);
  if (status.type() == std::filesystem::file_type::directory) fail(ErrorKind::config, "{}: is a folder", path);
  std::ifstream file(path, std::ios::binary);
  if (!file) fail(ErrorKind::config, "{}: cannot be opened", path);
  std::string text(kMaxYamlBytes + 1, '\0');  // one more than allowed, so that parse_yaml sees what is too long
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad()) fail(ErrorKind::config, "{}: cannot be read", path);
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

// The value of --set. A text such as [0-9]+ is no YAML, and who meant it does not think of quotes.
YamlNode set_value(std::string_view text, const YamlSource& source) {
  try {
    return parse_yaml(text, source);
  } catch (const Error& error) {
    throw Error(error.kind(),
                fmt::format("{} (a text that YAML reads otherwise takes quotes: '\"...\"')", error.what()));
  }
}

}  // namespace

struct Options::Document {
  std::vector<YamlSource> sources;  // the file or text, then each --set
  std::string folder;               // of the file; empty for text
  YamlNode root;
  std::vector<OptionDoc> documentation;
  std::set<std::string, std::less<>> documented;

  const YamlNode* find(std::string_view full_key) const {
    const YamlNode* node = &root;
    for (const std::string_view part : split_key(full_key)) {
      node = node->find(part);
      if (node == nullptr) return nullptr;
    }
    return node;
  }
  const YamlNode* value(std::string_view full_key) const {
    const YamlNode* node = find(full_key);
    return node == nullptr || node->kind == Kind::null ? nullptr : node;
  }

  [[noreturn]] void refuse(const YamlNode* node, std::string_view key, std::string_view message) const {
    const YamlSource& source = sources[node == nullptr ? 0 : static_cast<std::size_t>(node->source)];
    std::string place = node == nullptr ? source.name : source.place(node->line);
    if (place != fmt::format("--set {}", key)) place += fmt::format("{}{}", place.empty() ? "" : ": ", key);
    fail(ErrorKind::config, "{}: {}", place, message);
  }

  [[noreturn]] void expected(const YamlNode& node, std::string_view key, std::string_view what) const {
    const bool number = what.find("integer") != std::string_view::npos || what.find("number") != std::string_view::npos;
    std::string hint;
    if (number && node.kind == Kind::scalar) hint = number_hint(node.text);
    if (what == "text" && node.kind != Kind::scalar)
      hint = " (text that holds \": \" or begins with [ or { needs quotes)";
    refuse(&node, key, fmt::format("expected {}, got {}{}", what, shown_node(&node), hint));
  }

  void document(const std::string& key, std::string_view type, std::string_view fallback, std::string_view help) {
    if (!documented.insert(key).second) return;
    documentation.push_back({key, std::string(type), std::string(fallback), std::string(help)});
  }

  // The scalar of a documented key: nullptr when unset, an error when it is a list or map.
  const YamlNode* scalar(const std::string& key, std::string_view type, std::string_view fallback,
                         std::string_view help) {
    document(key, type, fallback, help);
    const YamlNode* node = value(key);
    if (node != nullptr && node->kind != Kind::scalar) expected(*node, key, type);
    return node;
  }

  // The entries of a documented list; one scalar counts as a list of one.
  std::vector<const YamlNode*> entries(const std::string& key, std::string_view type, std::string_view help) {
    document(key, type, "[]", help);
    const YamlNode* node = value(key);
    if (node == nullptr) return {};
    if (node->kind == Kind::map) expected(*node, key, type);
    if (node->kind == Kind::scalar) return {node};
    std::vector<const YamlNode*> entries;
    for (const YamlNode& item : node->items) {
      if (item.kind != Kind::scalar) expected(item, key, type);
      entries.push_back(&item);
    }
    return entries;
  }

  bool is_section(const std::string& key) const {
    const auto next = documented.lower_bound(key + ".");
    return next != documented.end() && next->starts_with(key + ".");
  }

  void check_known(const YamlNode& map, const std::string& prefix) const;
  std::string hint(const std::string& prefix, const std::string& word) const;
};

// A near name of the same section first, then the same or a near name elsewhere.
std::string Options::Document::hint(const std::string& prefix, const std::string& word) const {
  std::vector<std::string> here, leaves;
  for (const OptionDoc& doc : documentation) {
    leaves.push_back(doc.key.substr(doc.key.rfind('.') + 1));
    if (!doc.key.starts_with(prefix)) continue;
    here.push_back(doc.key.substr(prefix.size(), doc.key.find('.', prefix.size()) - prefix.size()));
  }
  if (word.find('.') != std::string::npos && documented.contains(word)) {
    return fmt::format(" (keys nest: write {} below {})", word.substr(word.rfind('.') + 1),
                       word.substr(0, word.rfind('.')));
  }
  if (const auto near = nearest_name(word, here)) return fmt::format(" (did you mean {}?)", *near);
  const auto leaf = nearest_name(word, leaves);
  if (!leaf) return "";
  const auto index = std::find(leaves.begin(), leaves.end(), *leaf) - leaves.begin();
  return fmt::format(" (did you mean {}?)", documentation[static_cast<std::size_t>(index)].key);
}

void Options::Document::check_known(const YamlNode& map, const std::string& prefix) const {
  for (const YamlNode& item : map.items) {
    const std::string key = prefix + item.key;
    const bool dotted = item.key.find('.') != std::string::npos;  // never a name, though it may look like a full key
    if (!dotted && documented.contains(key)) continue;
    if (!dotted && is_section(key)) {
      check_known(item, key + ".");
      continue;
    }
    fail(ErrorKind::config, "{}: unknown key {}{}", sources[static_cast<std::size_t>(item.source)].place(item.line),
         prefix + shown_text(item.key), hint(prefix, item.key));
  }
}

Options::Options() : document_(std::make_shared<Document>()) { document_->sources.push_back({"", false}); }

Options::Options(std::shared_ptr<Document> document, std::string prefix)
    : document_(std::move(document)), prefix_(std::move(prefix)) {}

Options Options::from_text(std::string_view text, std::string_view name) {
  Options options;
  options.document_->sources[0] = {std::string(name), true};
  options.document_->root = parse_yaml(text, options.document_->sources[0]);
  const YamlNode& root = options.document_->root;
  if (root.kind != Kind::null && root.kind != Kind::map) {
    fail(ErrorKind::config, "{}: expected keys and values (key: value), got {}",
         options.document_->sources[0].place(root.line), shown_node(&root));
  }
  return options;
}

Options Options::from_file(const std::string& path) {
  Options options = from_text(read_file(path), path);
  std::error_code error;
  options.document_->folder = std::filesystem::absolute(path, error).parent_path().string();
  return options;
}

void Options::set(std::string_view assignment) {
  const std::size_t equals = assignment.find('=');
  const std::string key(assignment.substr(0, equals));
  if (equals == std::string_view::npos) {
    fail(ErrorKind::config, "--set {}: expected key=value, e.g. draft.length=4", shown_text(key));
  }
  const std::vector<std::string_view> parts = split_key(key);
  if (std::find(parts.begin(), parts.end(), "") != parts.end() || parts.size() > kMaxYamlDepth) {
    fail(ErrorKind::config, "--set {}: expected key=value with a key like draft.length", shown_text(assignment));
  }
  const YamlSource source{"--set " + shown_text(key), false};
  YamlNode value = set_value(assignment.substr(equals + 1), source);
  const int index = static_cast<int>(document_->sources.size());
  assign_source(value, index);

  YamlNode* node = &document_->root;
  std::string above;
  for (const std::string_view part : parts) {
    if (node->kind == Kind::null) {
      node->kind = Kind::map;
      node->source = index;
    }
    if (node->kind != Kind::map) {
      fail(ErrorKind::config, "{}: {} holds {} ({}), so nothing can be set below it", source.name, above,
           shown_node(node), document_->sources[static_cast<std::size_t>(node->source)].place(node->line));
    }
    above += (above.empty() ? "" : ".") + std::string(part);
    YamlNode* child = node->find(part);
    if (child == nullptr) {
      child = &node->items.emplace_back();
      child->key = part;
      child->source = index;
    }
    node = child;
  }
  value.key = std::move(node->key);
  *node = std::move(value);
  document_->sources.push_back(source);
}

std::string Options::full(std::string_view key) const { return prefix_ + std::string(key); }

Options Options::section(std::string_view name) const {
  const std::string key = full(name);
  const YamlNode* node = document_->value(key);
  if (node != nullptr && node->kind != Kind::map) document_->expected(*node, key, "keys below it");
  return {document_, key + "."};
}

std::optional<std::string> Options::text(std::string_view key, std::string_view fallback, std::string_view help) const {
  const YamlNode* node = document_->scalar(full(key), "text", fallback, help);
  return node == nullptr ? std::nullopt : std::optional(node->text);
}

std::optional<std::string> Options::path(std::string_view key, std::string_view fallback, std::string_view help) const {
  const YamlNode* node = document_->scalar(full(key), "path", fallback, help);
  if (node == nullptr) return std::nullopt;
  if (node->text.empty()) document_->expected(*node, full(key), "path");
  return node->text;
}

std::optional<bool> Options::optional_boolean(std::string_view key, std::string_view fallback,
                                              std::string_view help) const {
  const YamlNode* node = document_->scalar(full(key), "true or false", fallback, help);
  if (node == nullptr) return std::nullopt;
  if (node->text != "true" && node->text != "false") document_->expected(*node, full(key), "true or false");
  return node->text == "true";
}

bool Options::boolean(std::string_view key, bool fallback, std::string_view help) const {
  return optional_boolean(key, fallback ? "true" : "false", help).value_or(fallback);
}

std::optional<std::int64_t> Options::optional_integer(std::string_view key, std::string_view fallback, std::int64_t low,
                                                      std::int64_t high, std::string_view help) const {
  const std::string type = integer_text(low, high);
  const YamlNode* node = document_->scalar(full(key), type, fallback, help);
  if (node == nullptr) return std::nullopt;
  const auto value = parse_integer(node->text, low, high);
  if (!value) document_->expected(*node, full(key), type);
  return value;
}

std::int64_t Options::integer(std::string_view key, std::int64_t fallback, std::int64_t low, std::int64_t high,
                              std::string_view help) const {
  return optional_integer(key, fmt::to_string(fallback), low, high, help).value_or(fallback);
}

std::optional<std::uint64_t> Options::integer_or(std::string_view key, std::string_view word,
                                                 std::optional<std::uint64_t> fallback, std::uint64_t low,
                                                 std::uint64_t high, std::string_view help) const {
  const std::string type = fmt::format("{} or {}", word, integer_text(low, high));
  const YamlNode* node =
      document_->scalar(full(key), type, fallback ? fmt::to_string(*fallback) : std::string(word), help);
  if (node == nullptr) return fallback;
  if (node->text == word) return std::nullopt;
  const auto value = parse_unsigned(node->text, low, high);
  if (!value) document_->expected(*node, full(key), type);
  return value;
}

std::optional<double> Options::optional_real(std::string_view key, std::string_view fallback, RealRange range,
                                             std::string_view help) const {
  const YamlNode* node = document_->scalar(full(key), range.text(), fallback, help);
  if (node == nullptr) return std::nullopt;
  const auto value = parse_real(node->text);
  if (!value || !range.contains(*value)) document_->expected(*node, full(key), range.text());
  return value;
}

double Options::real(std::string_view key, double fallback, RealRange range, std::string_view help) const {
  return optional_real(key, fmt::to_string(fallback), range, help).value_or(fallback);
}

std::optional<std::string> Options::optional_choice(std::string_view key, std::string_view fallback,
                                                    const std::vector<std::string>& allowed,
                                                    std::string_view help) const {
  const std::string type = joined_choices(allowed);
  const YamlNode* node = document_->scalar(full(key), type, fallback, help);
  if (node == nullptr) return std::nullopt;
  if (std::find(allowed.begin(), allowed.end(), node->text) == allowed.end()) {
    document_->expected(*node, full(key), type);
  }
  return node->text;
}

std::string Options::choice(std::string_view key, std::string_view fallback, const std::vector<std::string>& allowed,
                            std::string_view help) const {
  return optional_choice(key, fallback, allowed, help).value_or(std::string(fallback));
}

std::vector<std::string> Options::texts(std::string_view key, std::string_view help) const {
  std::vector<std::string> texts;
  for (const YamlNode* node : document_->entries(full(key), "list of texts", help)) texts.push_back(node->text);
  return texts;
}

std::vector<std::int64_t> Options::integers(std::string_view key, std::int64_t low, std::int64_t high,
                                            std::string_view help) const {
  const std::string type = fmt::format("list, each {}", integer_text(low, high));
  std::vector<std::int64_t> integers;
  for (const YamlNode* node : document_->entries(full(key), type, help)) {
    const auto value = parse_integer(node->text, low, high);
    if (!value) document_->expected(*node, full(key), type);
    integers.push_back(*value);
  }
  return integers;
}

std::vector<std::pair<std::int64_t, double>> Options::integer_reals(std::string_view key, std::int64_t low,
                                                                    std::int64_t high, std::string_view help) const {
  const std::string type = fmt::format("map from {} to number or -inf", integer_text(low, high));
  document_->document(full(key), type, "{}", help);
  const YamlNode* node = document_->value(full(key));
  if (node == nullptr) return {};
  if (node->kind != Kind::map) document_->expected(*node, full(key), type);
  std::vector<std::pair<std::int64_t, double>> pairs;
  std::set<std::int64_t> seen;
  for (const YamlNode& item : node->items) {
    const auto id = parse_integer(item.key, low, high);
    if (!id) {
      document_->refuse(&item, full(key),
                        fmt::format("expected {}, got key {}{}", type, shown_text(item.key), number_hint(item.key)));
    }
    if (!seen.insert(*id).second) document_->refuse(&item, full(key), fmt::format("duplicate key {}", *id));
    const bool scalar = item.kind == Kind::scalar;
    const bool lowest = scalar && (item.text == "-inf" || item.text == "-.inf");
    const auto value = scalar && !lowest ? parse_real(item.text) : std::nullopt;
    if (!value && !lowest) document_->expected(item, full(key), type);
    pairs.emplace_back(*id, lowest ? -std::numeric_limits<double>::infinity() : *value);
  }
  return pairs;
}

bool Options::has(std::string_view key) const { return document_->value(full(key)) != nullptr; }

std::string Options::shown(std::string_view key) const { return shown_node(document_->value(full(key))); }

void Options::refuse(std::string_view key, std::string_view message) const {
  document_->refuse(document_->find(full(key)), full(key), message);
}

std::string Options::base_folder(std::string_view key) const {
  const YamlNode* node = document_->find(full(key));
  if (node != nullptr && node->source == 0 && !document_->folder.empty()) return document_->folder;
  std::error_code error;
  return std::filesystem::current_path(error).string();
}

const std::string& Options::name() const { return document_->sources[0].name; }

void Options::require_all_read() const { document_->check_known(document_->root, ""); }

std::vector<OptionDoc> Options::documentation() const { return document_->documentation; }

}  // namespace tandem
