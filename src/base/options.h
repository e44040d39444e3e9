// A YAML map that knows which keys were read: strict typed access, and unknown keys reported with the nearest known
// name.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/base/option_text.h"

namespace tandem {

// One documented key, collected as sections are read: the source of `tandem config --help` and of nearest-name hints.
struct OptionDoc {
  std::string key;       // full dotted key, e.g. "draft.length"
  std::string type;      // e.g. "auto or integer 0..63"
  std::string fallback;  // default as text
  std::string help;      // one sentence
};

// Values are read from the plain scalars of the file, not through YAML's implicit typing: `yes` is text, 1e-3 is a
// real, 010 is refused as octal-looking, an empty or null value counts as unset, quotes around a scalar change nothing
// (but "" and "null" are texts). Every error is Error(config) of the form `file.yaml:12: draft.length: expected auto or
// integer 0..63, got 99`. Keys may be dotted. Copies and sections share one document.
class Options {
 public:
  Options();  // no keys set

  // Parses a file or text; refuses what parse_yaml refuses and a root that is not a map.
  static Options from_file(const std::string& path);
  static Options from_text(std::string_view text, std::string_view name);
  // `key.sub=value` from the command line replaces that key, with everything below it; the value is YAML (scalar, list
  // or map) and an empty one unsets the key. Errors name `--set key.sub`.
  void set(std::string_view assignment);

  Options section(std::string_view name) const;  // a nested map; empty when absent

  // Typed access. Each call documents its key; a fallback given as text is documentation only, and the answer for an
  // unset key is then nullopt or empty.
  std::optional<std::string> text(std::string_view key, std::string_view fallback, std::string_view help) const;
  // A file or folder as written, never empty text; `base_folder` says what a relative one starts from.
  std::optional<std::string> path(std::string_view key, std::string_view fallback, std::string_view help) const;
  bool boolean(std::string_view key, bool fallback, std::string_view help) const;  // true or false only
  std::optional<bool> optional_boolean(std::string_view key, std::string_view fallback, std::string_view help) const;
  std::int64_t integer(std::string_view key, std::int64_t fallback, std::int64_t low, std::int64_t high,
                       std::string_view help) const;
  std::optional<std::int64_t> optional_integer(std::string_view key, std::string_view fallback, std::int64_t low,
                                               std::int64_t high, std::string_view help) const;
  // An integer or `word` (e.g. auto, random): nullopt for the word. `fallback` nullopt = the word.
  std::optional<std::uint64_t> integer_or(std::string_view key, std::string_view word,
                                          std::optional<std::uint64_t> fallback, std::uint64_t low, std::uint64_t high,
                                          std::string_view help) const;
  double real(std::string_view key, double fallback, RealRange range, std::string_view help) const;
  std::optional<double> optional_real(std::string_view key, std::string_view fallback, RealRange range,
                                      std::string_view help) const;
  std::string choice(std::string_view key, std::string_view fallback, const std::vector<std::string>& allowed,
                     std::string_view help) const;
  std::optional<std::string> optional_choice(std::string_view key, std::string_view fallback,
                                             const std::vector<std::string>& allowed, std::string_view help) const;
  // Scalars of a list as text, or one scalar; no entry may be null.
  std::vector<std::string> texts(std::string_view key, std::string_view help) const;
  std::vector<std::int64_t> integers(std::string_view key, std::int64_t low, std::int64_t high,
                                     std::string_view help) const;
  // A map from id to finite real or -inf (YAML's -.inf too), in the order written.
  std::vector<std::pair<std::int64_t, double>> integer_reals(std::string_view key, std::int64_t low, std::int64_t high,
                                                             std::string_view help) const;

  bool has(std::string_view key) const;  // present and not null
  // The value as messages show it: `99`, `"two words"`, `a list of 3`, `nothing`.
  std::string shown(std::string_view key) const;
  // Throws Error(config) at this key's place: `file:line: key: message`.
  [[noreturn]] void refuse(std::string_view key, std::string_view message) const;
  // The absolute folder that a relative path under this key starts from: that of the file that holds the key, or the
  // working directory for --set and for text.
  std::string base_folder(std::string_view key) const;
  const std::string& name() const;  // of the file or text; empty when there is none

  // Throws for the first key that nothing has read, with the nearest key of its section.
  void require_all_read() const;
  std::vector<OptionDoc> documentation() const;  // in order of first reading

 private:
  struct Document;
  Options(std::shared_ptr<Document> document, std::string prefix);
  std::string full(std::string_view key) const;

  std::shared_ptr<Document> document_;
  std::string prefix_;  // "" or "draft." ...
};

}  // namespace tandem
