// YAML text as a plain tree of texts with line numbers; nothing is typed here and nothing is accepted twice.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace tandem {

// Longest configuration text and deepest nesting that are read; both far beyond any real configuration.
inline constexpr std::size_t kMaxYamlBytes = 1 << 20;
inline constexpr std::size_t kMaxYamlDepth = 16;

// Where a node came from, as messages name it: `file.yaml:12` or `--set draft.length`.
struct YamlSource {
  std::string name;
  bool has_lines = true;
  std::string place(int line) const;
};

struct YamlNode {
  enum class Kind { null, scalar, list, map };
  Kind kind = Kind::null;
  std::string key;              // its name, when it is the value of a map
  std::string text;             // of a scalar, after quotes and escapes are resolved
  std::vector<YamlNode> items;  // entries of a list, or values of a map in the order of the text
  int line = 0;                 // 1-based: of the key for a value of a map, else of the node itself
  int source = 0;               // index into the owner's list of sources

  YamlNode* find(std::string_view name);  // the value of that key; nullptr when absent or not a map
  const YamlNode* find(std::string_view name) const { return const_cast<YamlNode*>(this)->find(name); }
};

// Parses one YAML document (an empty one is null). Throws Error(config) that begins with the place for syntax errors,
// text that is not UTF-8 or holds control characters, duplicate keys, keys that are not text, anchors, aliases, tags,
// merge keys, a second document, and text beyond the two limits.
YamlNode parse_yaml(std::string_view text, const YamlSource& source);

// `text` as messages show it: shortened, and quoted with escapes when it is empty or holds blanks or control
// characters.
std::string shown_text(std::string_view text);

}  // namespace tandem
