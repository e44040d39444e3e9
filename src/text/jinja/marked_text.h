// Text that knows which of its bytes came from a chat's messages and which from its template.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::jinja {

// Every operation of the interpreter makes its text of slices and appends, so that the marks follow the bytes.
class MarkedText {
 public:
  struct Run {
    std::size_t end;  // byte after its last one
    bool input;       // from messages, tools or documents; else the template's own
  };

  MarkedText() = default;
  MarkedText(std::string bytes, bool input);

  const std::string& bytes() const { return bytes_; }
  std::size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }
  // In order, neighbours differ in `input`, none is empty; the last one ends at size().
  const std::vector<Run>& runs() const { return runs_; }
  bool input_at(std::size_t byte) const;  // byte < size()

  void append(std::string_view bytes, bool input);
  void append(const MarkedText& other);
  // The bytes begin..end, clamped to the text.
  MarkedText slice(std::size_t begin, std::size_t end) const;
  void append_slice(const MarkedText& other, std::size_t begin, std::size_t end);

 private:
  std::vector<Run>::const_iterator run_of(std::size_t byte) const;

  std::string bytes_;
  std::vector<Run> runs_;
};

// Where each character begins, and the size at the end. A maximal invalid part counts as one character.
std::vector<std::size_t> character_starts(std::string_view text);
std::size_t count_characters(std::string_view text);

}  // namespace tandem::jinja
