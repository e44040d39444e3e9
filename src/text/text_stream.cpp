#include "src/text/text_stream.h"

#include <algorithm>
#include <utility>

#include "src/base/error.h"
#include "src/text/utf8.h"

namespace tandem {

TextStream::TextStream(const Tokenizer& tokenizer, std::vector<TokenId> end_ids, std::vector<std::string> stop_strings)
    : tokenizer_(tokenizer), end_ids_(std::move(end_ids)), stop_strings_(std::move(stop_strings)) {
  for (const std::string& stop : stop_strings_) {
    if (stop.empty()) fail(ErrorKind::config, "stop.strings: expected texts of at least one byte, got an empty one");
    longest_stop_ = std::max(longest_stop_, stop.size());
  }
}

std::optional<StopMatch> TextStream::push(TokenId id) {
  if (stopped_) fail(ErrorKind::input, "text stream: expected no token after a stop, got id {}", id);
  ++pushed_;
  if (std::find(end_ids_.begin(), end_ids_.end(), id) != end_ids_.end()) {
    stopped_ = true;
    return StopMatch{pushed_, false};
  }
  const std::size_t before = text_.size();
  text_ += tokenizer_.bytes(id);
  // A new match ends in the new bytes, so it begins at most one byte less than the longest stop before them.
  const std::size_t from = before - std::min(before, longest_stop_ == 0 ? 0 : longest_stop_ - 1);
  std::size_t earliest = std::string::npos;
  for (const std::string& stop : stop_strings_) earliest = std::min(earliest, text_.find(stop, from));
  if (earliest == std::string::npos) return std::nullopt;
  text_.resize(earliest);
  stopped_ = true;
  return StopMatch{pushed_, true};
}

// End of the text that nothing to come can change: before the longest suffix that may grow into a stop string, and
// before a character that is not whole.
std::size_t TextStream::certain_bytes() const {
  const std::string_view text = text_;
  const auto may_become_stop = [&](std::size_t at) {
    return std::any_of(stop_strings_.begin(), stop_strings_.end(),
                       [&](const std::string& stop) { return stop.starts_with(text.substr(at)); });
  };
  std::size_t end = text.size();
  if (!stopped_) {
    std::size_t at = end - std::min(end - taken_, longest_stop_);
    while (at < end && !may_become_stop(at)) ++at;
    end = at;
  }
  return end - incomplete_utf8_tail(text.substr(taken_, end - taken_));
}

std::string TextStream::take() {
  const std::size_t end = certain_bytes();
  const std::size_t begin = std::exchange(taken_, end);
  return text_.substr(begin, end - begin);
}

std::string TextStream::finish() {
  const std::size_t begin = std::exchange(taken_, text_.size());
  return text_.substr(begin);
}

const std::string& TextStream::text() const { return text_; }

std::string to_valid_utf8(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  while (!bytes.empty()) {
    const Utf8Step step = utf8_step(bytes);
    if (step.valid) {
      out.append(bytes.substr(0, step.length));
    } else {
      out.append("\xEF\xBF\xBD");
    }
    bytes.remove_prefix(step.length);
  }
  return out;
}

}  // namespace tandem
