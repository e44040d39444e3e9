#include "src/base/yaml_tree.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <optional>
#include <sstream>
#include <unordered_map>

#include "src/base/error.h"

namespace tandem {
namespace {

// Bytes of the UTF-8 sequence at the start of `text`, or 0 when it is not one (overlong, surrogate, cut, out of range).
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  const bool overlong = (lead == 0xE0 && byte(1) < 0xA0) || (lead == 0xF0 && byte(1) < 0x90);
  const bool beyond = (lead == 0xED && byte(1) > 0x9F) || (lead == 0xF4 && byte(1) > 0x8F);
  return overlong || beyond ? 0 : length;
}

// yaml-cpp passes broken bytes on and takes byte 4 for the end of the text, so both are refused before it sees them.
void check_characters(std::string_view text, const YamlSource& source) {
  if (text.size() > kMaxYamlBytes) {
    fail(ErrorKind::config, "{}: expected at most {} bytes of YAML, got {}{}", source.name, kMaxYamlBytes, text.size(),
         source.has_lines ? " or more" : "");
  }
  int line = 1;
  std::size_t line_start = 0;
  for (std::size_t i = 0; i < text.size();) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const std::size_t length = utf8_length(text.substr(i));
    const bool control = (byte < 0x20 && byte != '\t' && byte != '\n' && byte != '\r') || byte == 0x7F;
    if (length == 0 || control) {
      fail(ErrorKind::config, "{}: expected UTF-8 text, got byte 0x{:02x} at column {}{}", source.place(line), byte,
           i - line_start + 1, control ? " (a control character)" : "");
    }
    i += length;
    if (byte == '\n') {
      ++line;
      line_start = i;
    }
  }
}

// Builds the tree from the parser's events. yaml-cpp's own Node would hide duplicate keys, tags and anchors.
class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(std::string_view text, const YamlSource& source) : text_(text), source_(source) {
    line_starts_.push_back(0);
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '\n') line_starts_.push_back(i + 1);
    }
  }

  YamlNode take() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (documents_++ > 0) refuse(mark, "expected one YAML document, found the start of another");
  }
  void OnDocumentEnd() override {}
  void OnAnchor(const YAML::Mark& mark, const std::string& name) override {
    refuse(mark, fmt::format("anchor &{} is not supported, write the value out", shown_text(name)));
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    refuse(mark, "aliases (*name) are not supported, write the value out");
  }
  void OnNull(const YAML::Mark& mark, YAML::anchor_t) override { add(mark, YamlNode{}); }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t, const std::string& value) override {
    if (tag != "!") check_tag(mark, tag);  // "!" is how the parser marks quoted text
    YamlNode node;
    node.kind = YamlNode::Kind::scalar;
    node.text = value;
    add(mark, std::move(node));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {
    open(mark, tag, YamlNode::Kind::list);
  }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t, YAML::EmitterStyle::value) override {
    open(mark, tag, YamlNode::Kind::map);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapEnd() override { close(); }

 private:
  struct Frame {
    YamlNode node;
    std::optional<std::string> key;  // of the value to come, in a map
    YAML::Mark key_mark;
    std::unordered_map<std::string, int> seen;  // key -> line
  };

  [[noreturn]] void refuse(const YAML::Mark& mark, const std::string& message) const {
    fail(ErrorKind::config, "{}: {}", source_.place(mark.line + 1), message);
  }

  void check_tag(const YAML::Mark& mark, const std::string& tag) const {
    if (tag != "?") refuse(mark, fmt::format("tag {} is not supported, remove it", shown_text(tag)));
  }

  bool wants_key() const {
    return !frames_.empty() && frames_.back().node.kind == YamlNode::Kind::map && !frames_.back().key;
  }

  std::string full_name(const std::string& key) const {
    std::string name;
    for (const Frame& frame : frames_) {
      if (frame.key) name += shown_text(*frame.key) + ".";
    }
    return name + shown_text(key);
  }

  void take_key(const YAML::Mark& mark, YamlNode node) {
    Frame& frame = frames_.back();
    if (node.kind != YamlNode::Kind::scalar) refuse(mark, "a key cannot be empty or null");
    if (node.text == "<<") refuse(mark, "merge keys (<<) are not supported, write the values out");
    const auto [first, is_new] = frame.seen.try_emplace(node.text, mark.line + 1);
    if (!is_new) {
      refuse(mark, fmt::format("duplicate key {} (first on line {})", full_name(node.text), first->second));
    }
    frame.key = std::move(node.text);
    frame.key_mark = mark;
  }

  // yaml-cpp takes a lone word on the last line of a map for a key without a value; here the colon must be written.
  void require_colon(const Frame& frame) const {
    std::size_t at =
        line_starts_[static_cast<std::size_t>(frame.key_mark.line)] + static_cast<std::size_t>(frame.key_mark.column);
    const char quote = text_[at];
    if (quote == '"' || quote == '\'') {
      for (++at; at < text_.size() && text_[at] != quote; ++at) {
        if (quote == '"' && text_[at] == '\\') ++at;
        if (quote == '\'' && text_.substr(at, 2) == "''") ++at;
      }
      ++at;
    } else {
      at += frame.key->size();
    }
    while (at < text_.size() && (text_[at] == ' ' || text_[at] == '\t')) ++at;
    if (at >= text_.size() || text_[at] != ':') {
      refuse(frame.key_mark,
             fmt::format("expected key: value, got {} without a colon or closing bracket", shown_text(*frame.key)));
    }
  }

  void add(const YAML::Mark& mark, YamlNode node) {
    if (wants_key()) return take_key(mark, std::move(node));
    if (frames_.empty()) {
      node.line = mark.line + 1;
      root_ = std::move(node);
      return;
    }
    Frame& frame = frames_.back();
    node.line = (frame.key ? frame.key_mark.line : mark.line) + 1;
    if (frame.key) {
      if (node.kind == YamlNode::Kind::null) require_colon(frame);
      node.key = std::move(*frame.key);
      frame.key.reset();
    }
    frame.node.items.push_back(std::move(node));
  }

  // The limit on nesting is enforced here so that no recursion, the parser's or ours, can go deep.
  void open(const YAML::Mark& mark, const std::string& tag, YamlNode::Kind kind) {
    check_tag(mark, tag);
    if (wants_key()) {
      refuse(mark, "expected a key, got a list or map (unclosed, or text that begins with { or [ and needs quotes)");
    }
    if (frames_.size() >= kMaxYamlDepth) {
      refuse(mark, fmt::format("expected at most {} levels of nesting", kMaxYamlDepth));
    }
    Frame frame;
    frame.node.kind = kind;
    frames_.push_back(std::move(frame));
    marks_.push_back(mark);
  }

  void close() {
    YamlNode node = std::move(frames_.back().node);
    const YAML::Mark mark = marks_.back();
    frames_.pop_back();
    marks_.pop_back();
    add(mark, std::move(node));
  }

  std::string_view text_;
  const YamlSource& source_;
  std::vector<std::size_t> line_starts_;
  YamlNode root_;
  int documents_ = 0;
  std::vector<Frame> frames_;
  std::vector<YAML::Mark> marks_;
};

}  // namespace

std::string YamlSource::place(int line) const { return has_lines ? fmt::format("{}:{}", name, line) : name; }

YamlNode* YamlNode::find(std::string_view name) {
  if (kind != Kind::map) return nullptr;
  for (YamlNode& item : items) {
    if (item.key == name) return &item;
  }
  return nullptr;
}

YamlNode parse_yaml(std::string_view text, const YamlSource& source) {
  check_characters(text, source);
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  // yaml-cpp takes the end of the text for the end of an open quote or bracket; an end mark makes it an error.
  std::istringstream stream(fmt::format("{}{}...\n", text, text.ends_with('\n') ? "" : "\n"));
  TreeBuilder builder(text, source);
  try {
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::Exception& error) {
    std::string message = error.msg;
    if (message == YAML::ErrorMsg::DOC_IN_SCALAR || message == YAML::ErrorMsg::EOF_IN_SCALAR) {
      message = "a quoted text is not closed";
    } else if (message == YAML::ErrorMsg::UNKNOWN_TOKEN) {
      message = "text that begins with `, @ or % needs quotes";
    }
    fail(ErrorKind::config, "{}: not valid YAML: {}", source.place(error.mark.line + 1), message);
  }
  return builder.take();
}

std::string shown_text(std::string_view text) {
  constexpr std::size_t kShownBytes = 60;
  std::string_view head = text.substr(0, kShownBytes);
  while (!head.empty() && head.size() < text.size() && (static_cast<unsigned char>(text[head.size()]) & 0xC0) == 0x80) {
    head.remove_suffix(1);
  }
  std::string shown;
  bool quotes = text.empty();
  for (const char c : head) {
    const auto byte = static_cast<unsigned char>(c);
    quotes = quotes || byte <= ' ' || c == '"' || byte == 0x7F;
    if (byte < ' ' || byte == 0x7F) {
      shown += c == '\n' ? "\\n" : c == '\t' ? "\\t" : fmt::format("\\x{:02x}", byte);
    } else {
      if (c == '"') shown += '\\';
      shown += c;
    }
  }
  if (quotes) shown = '"' + shown + '"';
  if (head.size() < text.size()) shown += fmt::format("... ({} bytes)", text.size());
  return shown;
}

}  // namespace tandem
