#include "src/text/jinja/json_text.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "src/text/utf8.h"

namespace tandem::jinja {
namespace {

class Writer {
 public:
  Writer(Runtime& runtime, const Arguments& arguments)
      : runtime_(runtime), given_(arguments, {"ensure_ascii", "indent", "separators", "sort_keys"}) {
    ascii_ = given_.truth_or(0, false);
    sort_ = given_.truth_or(3, false);
    if (given_.has(1) && !given_[1].is<None>()) {
      if (const MarkedText* text = given_[1].text()) {
        indent_ = *text;
      } else {
        indent_ = runtime.blanks("tojson", given_.integer_or(1, 0));
      }
      comma_ = MarkedText(",", false);
    }
    if (given_.has(2) && !given_[2].is<None>()) {
      const std::vector<Value> pair = runtime.items(given_[2]);
      if (pair.size() != 2 || pair[0].text() == nullptr || pair[1].text() == nullptr) {
        wrong("tojson: separators: expected two strings");
      }
      comma_ = *pair[0].text();
      colon_ = *pair[1].text();
    }
  }

  MarkedText take() { return std::move(out_); }

  void write(const Value& value, std::size_t level) {
    runtime_.spend(1);
    runtime_.require_text(out_.size());
    if (const MarkedText* text = value.text()) {
      write_string(*text);
    } else if (const Sequence* sequence = value.sequence()) {
      if (sequence->kind != SequenceKind::list && sequence->kind != SequenceKind::tuple) refuse(value);
      write_group('[', ']', sequence->items.size(), level,
                  [&](std::size_t i) { write(sequence->items[i], level + 1); });
    } else if (const Dict* dict = value.dict()) {
      write_dict(*dict, level);
    } else {
      out_.append(scalar(value), false);
    }
  }

 private:
  [[noreturn]] static void refuse(const Value& value) {
    wrong("tojson: a value of type {} is not JSON serializable", type_name(value));
  }

  static std::string scalar(const Value& value) {
    if (value.is<None>()) return "null";
    if (const bool* flag = value.as<bool>()) return *flag ? "true" : "false";
    if (const std::int64_t* integer = value.as<std::int64_t>()) return std::to_string(*integer);
    const double* real = value.as<double>();
    if (real == nullptr) refuse(value);
    if (std::isnan(*real)) return "NaN";
    if (std::isinf(*real)) return *real > 0 ? "Infinity" : "-Infinity";
    return float_text(*real);
  }

  template <typename WriteItem>
  void write_group(char open, char close, std::size_t size, std::size_t level, WriteItem write_item) {
    out_.append(std::string(1, open), false);
    for (std::size_t i = 0; i < size; ++i) {
      if (i > 0) out_.append(comma_);
      break_line(level + 1);
      write_item(i);
    }
    if (size > 0) break_line(level);
    out_.append(std::string(1, close), false);
  }

  void write_dict(const Dict& dict, std::size_t level) {
    std::vector<const std::pair<Value, Value>*> entries;
    for (const auto& entry : dict.entries) entries.push_back(&entry);
    if (sort_) {
      const auto key = [](const auto* entry) -> const std::string& {
        if (entry->first.text() == nullptr) unsupported("tojson: sort_keys with keys that are no strings");
        return entry->first.text()->bytes();
      };
      for (const auto* entry : entries) key(entry);
      std::stable_sort(entries.begin(), entries.end(), [&](auto* a, auto* b) { return key(a) < key(b); });
    }
    write_group('{', '}', entries.size(), level, [&](std::size_t i) {
      const auto& [key, value] = *entries[i];
      if (const MarkedText* text = key.text()) {
        write_string(*text);
      } else {
        write_string(MarkedText(scalar(key), false));
      }
      out_.append(colon_);
      write(value, level + 1);
    });
  }

  void break_line(std::size_t level) {
    if (!indent_) return;
    out_.append("\n", false);
    for (std::size_t i = 0; i < level; ++i) out_.append(*indent_);
  }

  std::string escaped(std::string_view character) const {
    switch (character[0]) {
      case '"':
        return "\\\"";
      case '\\':
        return "\\\\";
      case '\n':
        return "\\n";
      case '\r':
        return "\\r";
      case '\t':
        return "\\t";
      case '\b':
        return "\\b";
      case '\f':
        return "\\f";
      default:
        break;
    }
    const Utf8Step step = utf8_step(character);
    const auto code = static_cast<std::uint32_t>(step.character);
    if (step.valid && code < 0x20) return fmt::format("\\u{:04x}", code);
    if (!ascii_ || (step.valid && code < 0x80)) return std::string(character);
    if (!step.valid) unsupported("tojson: ensure_ascii with text that is not UTF-8");
    if (code < 0x10000) return fmt::format("\\u{:04x}", code);
    return fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + ((code - 0x10000) >> 10), 0xDC00 + ((code - 0x10000) & 0x3FF));
  }

  void write_string(const MarkedText& text) {
    runtime_.spend(text.size() / 8);
    const std::vector<std::size_t> starts = character_starts(text.bytes());
    out_.append("\"", false);
    for (std::size_t i = 0; i + 1 < starts.size(); ++i) {
      const std::string_view character = std::string_view(text.bytes()).substr(starts[i], starts[i + 1] - starts[i]);
      out_.append(escaped(character), text.input_at(starts[i]));
    }
    out_.append("\"", false);
  }

  Runtime& runtime_;
  Parameters given_;
  bool ascii_ = false, sort_ = false;
  std::optional<MarkedText> indent_;
  MarkedText comma_{", ", false}, colon_{": ", false};
  MarkedText out_;
};

}  // namespace

Value to_json(Runtime& runtime, const Value& value, const Arguments& arguments) {
  Writer writer(runtime, arguments);
  writer.write(value, 0);
  return runtime.text(writer.take());
}

Value from_json(Runtime& runtime, const nlohmann::ordered_json& json, bool trusted) {
  using Type = nlohmann::ordered_json::value_t;
  switch (json.type()) {
    case Type::boolean:
      return Value(json.get<bool>());
    case Type::number_integer:
      return Value(json.get<std::int64_t>());
    case Type::number_float:
      return Value(json.get<double>());
    case Type::string:
      return runtime.text(MarkedText(json.get_ref<const std::string&>(), !trusted));
    case Type::number_unsigned: {
      const auto number = json.get<std::uint64_t>();
      if (number > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
        unsupported("expected integers below 2^63, got {}", number);
      }
      return Value(static_cast<std::int64_t>(number));
    }
    case Type::array: {
      std::vector<Value> items;
      for (const auto& item : json) items.push_back(from_json(runtime, item, trusted));
      return runtime.list(std::move(items));
    }
    case Type::object: {
      std::vector<std::pair<Value, Value>> entries;
      for (const auto& [key, item] : json.items()) {
        entries.emplace_back(runtime.text(MarkedText(key, !trusted)), from_json(runtime, item, trusted));
      }
      return runtime.dict(std::move(entries));
    }
    default:
      return Value(None{});
  }
}

}  // namespace tandem::jinja
