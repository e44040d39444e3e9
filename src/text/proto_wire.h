// The wire format of protocol buffers, as far as SentencePiece models use it.
#pragma once
#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

#include "src/base/error.h"

namespace tandem {

inline void append_raw_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

inline void append_varint(std::string& out, int field, std::uint64_t value) {
  append_raw_varint(out, static_cast<std::uint64_t>(field) << 3);
  append_raw_varint(out, value);
}

inline void append_bytes(std::string& out, int field, std::string_view bytes) {
  append_raw_varint(out, static_cast<std::uint64_t>(field) << 3 | 2);
  append_raw_varint(out, bytes.size());
  out += bytes;
}

inline void append_float(std::string& out, int field, float value) {
  append_raw_varint(out, static_cast<std::uint64_t>(field) << 3 | 5);
  const auto bits = std::bit_cast<std::uint32_t>(value);
  for (int shift = 0; shift < 32; shift += 8) out.push_back(static_cast<char>(bits >> shift));
}

// The fields of one message, in order. Every fault is an Error(file) that names `where` and the place.
class ProtoReader {
 public:
  // Both views outlive this.
  ProtoReader(std::string_view message, std::string_view where, std::size_t offset = 0)
      : rest_(message), where_(where), offset_(offset), size_(message.size()) {}

  // Reads the next field; false at the end of the message.
  bool next() {
    if (rest_.empty()) return false;
    const std::uint64_t key = varint();
    wire_ = static_cast<int>(key & 7);
    field_ = key >> 3 <= kLastField ? static_cast<int>(key >> 3) : 0;
    if (field_ == 0) refuse("a field number in 1..536870911", key >> 3);
    switch (wire_) {
      case 0:
        value_ = varint();
        break;
      case 1:
        bytes_ = take(8);
        break;
      case 2:
        bytes_ = take(varint());
        break;
      case 5:
        bytes_ = take(4);
        break;
      default:
        refuse("wire type 0, 1, 2 or 5", wire_);
    }
    return true;
  }

  int field() const { return field_; }
  std::string_view where() const { return where_; }

  // The field's value; another wire type is refused.
  std::uint64_t integer() const {
    require(0);
    return value_;
  }
  std::string_view bytes() const {
    require(2);
    return bytes_;
  }
  float real() const {
    require(5);
    std::uint32_t bits = 0;
    for (int i = 3; i >= 0; --i) bits = bits << 8 | static_cast<unsigned char>(bytes_[i]);
    return std::bit_cast<float>(bits);
  }
  ProtoReader message() const { return {bytes(), where_, position() - bytes_.size()}; }

 private:
  static constexpr std::uint64_t kLastField = (1u << 29) - 1;

  std::size_t position() const { return offset_ + size_ - rest_.size(); }

  [[noreturn]] void refuse(std::string_view expected, std::uint64_t got) const {
    fail(ErrorKind::file, "{}: byte {}: expected {} of a SentencePiece model, got {}", where_, position(), expected,
         got);
  }

  void require(int wire) const {
    if (wire_ != wire) {
      fail(ErrorKind::file, "{}: byte {}: field {}: expected wire type {} of a SentencePiece model, got {}", where_,
           position(), field_, wire, wire_);
    }
  }

  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1)[0]);
      value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
    refuse("a number of at most 10 bytes", 11);
  }

  std::string_view take(std::uint64_t length) {
    if (length > rest_.size()) {
      fail(ErrorKind::file, "{}: byte {}: expected {} more bytes of a SentencePiece model, got {}", where_, position(),
           length, rest_.size());
    }
    const std::string_view out = rest_.substr(0, static_cast<std::size_t>(length));
    rest_.remove_prefix(out.size());
    return out;
  }

  std::string_view rest_, where_;
  std::size_t offset_, size_;  // where the message begins in its file; its bytes
  int field_ = 0, wire_ = 0;
  std::uint64_t value_ = 0;
  std::string_view bytes_;
};

}  // namespace tandem
