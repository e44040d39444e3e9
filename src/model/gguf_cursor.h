// A read position in untrusted little-endian bytes: every read is checked against what is left.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "src/base/error.h"

namespace tandem {

static_assert(std::endian::native == std::endian::little, "numbers are read as they lie in a little-endian file");

// A name from an untrusted file, fit for a message: control and non-ASCII bytes as \xNN, cut after 100 bytes.
std::string printable(std::string_view text);

class GgufCursor {
 public:
  GgufCursor(std::span<const std::byte> bytes, std::string_view file_name) : bytes_(bytes), file_name_(file_name) {}

  std::uint64_t offset() const { return offset_; }
  std::uint64_t left() const { return bytes_.size() - offset_; }

  // What is being read from here on ("metadata key 3 of 20", "tensor blk.0.attn_q.weight"): the second part of every
  // message.
  void set_place(std::string place) { place_ = std::move(place); }

  // The next number; `field` names it in the message when too few bytes are left.
  template <typename T>
  T number(std::string_view field) {
    T value;
    std::memcpy(&value, take(sizeof value, field), sizeof value);
    return value;
  }

  // A 64-bit length and that many bytes; the view points into the file.
  std::string_view text(std::string_view field) {
    const auto length = number<std::uint64_t>(field);
    return {reinterpret_cast<const char*>(take(length, field)), length};
  }

  // A 64-bit count of things that take at least `item_bytes` each: refused when they cannot fit in the bytes left.
  std::uint64_t count(std::string_view field, std::uint64_t item_bytes);

  // The next `size` bytes, passed over.
  const std::byte* take(std::uint64_t size, std::string_view field) {
    if (size > left()) fail_short(size, field);
    const std::byte* start = bytes_.data() + offset_;
    offset_ += size;
    return start;
  }

  // Throws Error(file): file name, place, then the message.
  template <typename... Args>
  [[noreturn]] void fail_here(fmt::format_string<Args...> format, Args&&... args) const {
    fail_with(fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  [[noreturn]] void fail_short(std::uint64_t needed, std::string_view field) const;
  [[noreturn]] void fail_with(const std::string& message) const;

  std::span<const std::byte> bytes_;
  std::string_view file_name_;
  std::string place_ = "header";
  std::uint64_t offset_ = 0;
};

}  // namespace tandem
