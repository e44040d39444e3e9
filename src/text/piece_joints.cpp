#include "src/text/piece_joints.h"

#include <algorithm>
#include <cstdint>

namespace tandem {
namespace {

constexpr char32_t kSpaceMark = 0x2581;

}  // namespace

Utf8Step byte_token_step(std::string_view text) {
  constexpr std::size_t kTaken = 4;
  if (text.empty() || static_cast<unsigned char>(text[0]) < 0xF5) return utf8_step(text);
  return {std::min(kTaken, text.size()), false, text.size() < kTaken, 0};
}

std::size_t PieceJoints::place_of(char32_t left, char32_t right) {
  const auto marked = [](char32_t c) { return static_cast<std::uint64_t>(c == U' ' ? kSpaceMark : c); };
  return static_cast<std::size_t>((marked(left) << 32 | marked(right)) * 0x9E3779B97F4A7C15u >> 41);
}

void PieceJoints::add(std::string_view piece) {
  Utf8Step left = utf8_step(piece);
  for (piece.remove_prefix(left.length); !piece.empty();) {
    const Utf8Step right = utf8_step(piece);
    if (left.valid && right.valid) bits_->set(place_of(left.character, right.character));
    piece.remove_prefix(right.length);
    left = right;
  }
}

std::size_t PieceJoints::last_seam(std::string_view text) const {
  std::size_t seam = 0;
  Utf8Step left = byte_token_step(text);
  for (std::size_t at = left.length; at < text.size();) {
    const Utf8Step right = byte_token_step(text.substr(at));
    const bool apart = !left.valid || !right.valid || !may_join(left.character, right.character);
    if (apart && !right.incomplete) seam = at;
    at += right.length;
    left = right;
  }
  return seam;
}

}  // namespace tandem
