// Numbers, texts and rows of a recording as bytes and back.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "src/engine/recording.h"
#include "src/model/gguf_cursor.h"

namespace tandem {

class RecordingWriter {
 public:
  template <typename T>
  void number(T value) {
    static_assert(std::is_arithmetic_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  // A 64-bit count, then the items.
  template <typename T>
  void list(const std::vector<T>& items) {
    static_assert(std::is_trivially_copyable_v<T>);
    number<std::uint64_t>(items.size());
    bytes_.append(reinterpret_cast<const char*>(items.data()), items.size() * sizeof(T));
  }
  void text(std::string_view text) {
    number<std::uint64_t>(text.size());
    bytes_ += text;
  }
  std::string_view bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// Every read is checked against what is left: Error(file) naming file, place and field.
class RecordingReader {
 public:
  RecordingReader(std::string_view bytes, std::string_view file) : cursor_(std::as_bytes(std::span(bytes)), file) {}

  void set_place(std::string place) { cursor_.set_place(std::move(place)); }
  template <typename T>
  T number(std::string_view field) {
    return cursor_.number<T>(field);
  }
  template <typename T>
  std::vector<T> list(std::string_view field) {
    const std::uint64_t count = cursor_.count(field, sizeof(T));
    std::vector<T> items(count);
    const std::byte* from = cursor_.take(count * sizeof(T), field);
    if (count > 0) std::memcpy(items.data(), from, count * sizeof(T));
    return items;
  }
  std::string text(std::string_view field) { return std::string(cursor_.text(field)); }
  // How many things of at least `item_bytes` each follow.
  std::uint64_t count(std::string_view field, std::uint64_t item_bytes) { return cursor_.count(field, item_bytes); }
  template <typename... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) const {
    cursor_.fail_here(format, std::forward<Args>(args)...);
  }
  void require_end() const {
    if (cursor_.left() > 0) cursor_.fail_here("expected its end, got {} bytes more", cursor_.left());
  }

 private:
  GgufCursor cursor_;
};

void write_answer(RecordingWriter& out, const RecordedAnswer& answer);
// Refuses an answer whose parts do not fit together or hold tokens beyond `settings.vocabulary`.
RecordedAnswer read_answer(RecordingReader& in, const RecordingSettings& settings);

}  // namespace tandem
