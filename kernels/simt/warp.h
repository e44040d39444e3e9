// The primitives through which the lanes of a warp exchange values.
#pragma once
#include <array>
#include <cstdint>
#include <span>

#include "kernels/simt/place.h"

namespace tandem::simt {

enum class Primitive : std::uint8_t {
  sync,
  shuffle,
  shuffle_up,
  shuffle_down,
  shuffle_xor,
  ballot,
  any,
  all,
  match_any,
  add,
  minimum,
  maximum,
  minimum_signed,
  maximum_signed,
  bits_and,
  bits_or,
  bits_xor
};

const char* name_of(Primitive primitive);

// One lane's call; the value's bits are in the low end.
struct WarpCall {
  Primitive primitive = Primitive::sync;
  unsigned mask = 0;
  std::uint64_t value = 0;
  int operand = 0;  // source lane, distance or xor mask of a shuffle
  int width = 32;   // segment of a shuffle
  Place where;
  std::uint64_t result = 0;
};

// Fills `result` of every lane of `participants`; the calls of the other lanes are not read. Throws Fault(mask), which
// names the lane, for a shuffle that reads a lane that takes no part.
void complete(std::span<WarpCall* const> calls, unsigned participants);

}  // namespace tandem::simt
