#include "src/model/gguf_cursor.h"

namespace tandem {

std::string printable(std::string_view text) {
  constexpr std::size_t kMostBytes = 100;
  std::string out;
  for (const char c : text.substr(0, kMostBytes)) {
    if (c >= 0x20 && c < 0x7f) {
      out += c;
    } else {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  if (text.size() > kMostBytes) out += fmt::format("... ({} bytes)", text.size());
  return out;
}

std::uint64_t GgufCursor::count(std::string_view field, std::uint64_t item_bytes) {
  const auto count = number<std::uint64_t>(field);
  if (count > left() / item_bytes) {
    fail_here("{} {} needs at least {} bytes each at byte {}, the file has {} bytes left", field, count, item_bytes,
              offset_, left());
  }
  return count;
}

void GgufCursor::fail_short(std::uint64_t needed, std::string_view field) const {
  fail_here("{} needs {} bytes at byte {}, the file has {} bytes left", field, needed, offset_, left());
}

void GgufCursor::fail_with(const std::string& message) const {
  fail(ErrorKind::file, "{}: {}: {}", file_name_, place_, message);
}

}  // namespace tandem
