#include "kernels/simt/warp.h"

#include <fmt/format.h>

#include <bit>

#include "kernels/simt/fault.h"

namespace tandem::simt {
namespace {

// The lane that a shuffle of `lane` reads; beyond its segment it is the lane itself.
int source_of(const WarpCall& call, int lane) {
  const int first = lane & ~(call.width - 1), last = first + call.width - 1;
  switch (call.primitive) {
    case Primitive::shuffle:
      return first + (call.operand & (call.width - 1));
    case Primitive::shuffle_up:
      return lane - call.operand < first ? lane : lane - call.operand;
    case Primitive::shuffle_down:
      return lane + call.operand > last ? lane : lane + call.operand;
    default: {
      const int source = lane ^ call.operand;
      return source > last ? lane : source;
    }
  }
}

std::uint64_t combine(Primitive primitive, std::uint64_t a, std::uint64_t b) {
  const auto x = static_cast<std::uint32_t>(a), y = static_cast<std::uint32_t>(b);
  const auto signed_x = static_cast<std::int32_t>(x), signed_y = static_cast<std::int32_t>(y);
  switch (primitive) {
    case Primitive::add:
      return x + y;
    case Primitive::minimum:
      return x < y ? x : y;
    case Primitive::maximum:
      return x > y ? x : y;
    case Primitive::minimum_signed:
      return signed_x < signed_y ? x : y;
    case Primitive::maximum_signed:
      return signed_x > signed_y ? x : y;
    case Primitive::bits_and:
      return x & y;
    case Primitive::bits_or:
      return x | y;
    default:
      return x ^ y;
  }
}

template <typename Visit>
void each_lane(unsigned participants, Visit&& visit) {
  for (unsigned rest = participants; rest != 0; rest &= rest - 1) visit(std::countr_zero(rest));
}

void shuffle(std::span<WarpCall* const> calls, unsigned participants) {
  each_lane(participants, [&](int lane) {
    const int source = source_of(*calls[lane], lane);
    if ((participants >> source & 1) == 0) {
      throw Fault(FaultKind::mask, fmt::format("lane {} reads lane {}, which takes no part in {} of mask {:#010x}",
                                               lane, source, name_of(calls[lane]->primitive), calls[lane]->mask));
    }
    calls[lane]->result = calls[source]->value;
  });
}

void vote(std::span<WarpCall* const> calls, unsigned participants, Primitive primitive) {
  unsigned votes = 0;
  each_lane(participants, [&](int lane) { votes |= unsigned{calls[lane]->value != 0} << lane; });
  const std::uint64_t result = primitive == Primitive::ballot ? votes
                               : primitive == Primitive::any  ? std::uint64_t{votes != 0}
                                                              : std::uint64_t{votes == participants};
  each_lane(participants, [&](int lane) { calls[lane]->result = result; });
}

void match(std::span<WarpCall* const> calls, unsigned participants) {
  each_lane(participants, [&](int lane) {
    unsigned equal = 0;
    each_lane(participants, [&](int other) { equal |= unsigned{calls[other]->value == calls[lane]->value} << other; });
    calls[lane]->result = equal;
  });
}

void reduce(std::span<WarpCall* const> calls, unsigned participants, Primitive primitive) {
  std::uint64_t total = calls[std::countr_zero(participants)]->value;
  each_lane(participants & (participants - 1),
            [&](int lane) { total = combine(primitive, total, calls[lane]->value); });
  each_lane(participants, [&](int lane) { calls[lane]->result = total; });
}

}  // namespace

const char* name_of(Primitive primitive) {
  static constexpr std::array<const char*, 17> kNames{
      "__syncwarp",        "__shfl_sync",       "__shfl_up_sync",    "__shfl_down_sync",  "__shfl_xor_sync",
      "__ballot_sync",     "__any_sync",        "__all_sync",        "__match_any_sync",  "__reduce_add_sync",
      "__reduce_min_sync", "__reduce_max_sync", "__reduce_min_sync", "__reduce_max_sync", "__reduce_and_sync",
      "__reduce_or_sync",  "__reduce_xor_sync"};
  return kNames[static_cast<std::size_t>(primitive)];
}

void complete(std::span<WarpCall* const> calls, unsigned participants) {
  const Primitive primitive = calls[std::countr_zero(participants)]->primitive;
  switch (primitive) {
    case Primitive::sync:
      break;
    case Primitive::shuffle:
    case Primitive::shuffle_up:
    case Primitive::shuffle_down:
    case Primitive::shuffle_xor:
      shuffle(calls, participants);
      break;
    case Primitive::ballot:
    case Primitive::any:
    case Primitive::all:
      vote(calls, participants, primitive);
      break;
    case Primitive::match_any:
      match(calls, participants);
      break;
    default:
      reduce(calls, participants, primitive);
      break;
  }
}

}  // namespace tandem::simt
