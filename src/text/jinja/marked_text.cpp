#include "src/text/jinja/marked_text.h"

#include <algorithm>

#include "src/text/utf8.h"

namespace tandem::jinja {

MarkedText::MarkedText(std::string bytes, bool input) : bytes_(std::move(bytes)) {
  if (!bytes_.empty()) runs_.push_back({bytes_.size(), input});
}

std::vector<MarkedText::Run>::const_iterator MarkedText::run_of(std::size_t byte) const {
  return std::upper_bound(runs_.begin(), runs_.end(), byte,
                          [](std::size_t at, const Run& run) { return at < run.end; });
}

bool MarkedText::input_at(std::size_t byte) const { return run_of(byte)->input; }

void MarkedText::append(std::string_view bytes, bool input) {
  if (bytes.empty()) return;
  bytes_ += bytes;
  if (!runs_.empty() && runs_.back().input == input) {
    runs_.back().end = bytes_.size();
  } else {
    runs_.push_back({bytes_.size(), input});
  }
}

void MarkedText::append(const MarkedText& other) { append_slice(other, 0, other.size()); }

void MarkedText::append_slice(const MarkedText& other, std::size_t begin, std::size_t end) {
  end = std::min(end, other.size());
  for (auto run = other.run_of(begin); begin < end; ++run) {
    const std::size_t stop = std::min(end, run->end);
    append(std::string_view(other.bytes_).substr(begin, stop - begin), run->input);
    begin = stop;
  }
}

MarkedText MarkedText::slice(std::size_t begin, std::size_t end) const {
  MarkedText part;
  part.append_slice(*this, begin, end);
  return part;
}

std::vector<std::size_t> character_starts(std::string_view text) {
  std::vector<std::size_t> starts;
  for (std::size_t at = 0; at < text.size(); at += utf8_step(text.substr(at)).length) starts.push_back(at);
  starts.push_back(text.size());
  return starts;
}

std::size_t count_characters(std::string_view text) {
  std::size_t count = 0;
  for (std::size_t at = 0; at < text.size(); at += utf8_step(text.substr(at)).length) ++count;
  return count;
}

}  // namespace tandem::jinja
