// Weights from tiles to rows.
//
// Threads: a warp for the 16 outputs x 64 inputs of a pair of sub-blocks, a lane for 2 outputs x 16 inputs; 8 warps a
// block. embed uses the four lanes of one output and leaves the others idle. A panel reads what the weight has and
// writes 2 bytes a weight (4 of F32); the product then reads them from the L2. embed reads 64 bytes for each 4 it uses:
// 16 KB for a row of 1,536 values, some 100 KB a step of 8 rows.
#include "kernels/cuda/expand.h"
#include "kernels/cuda/tile_floats.cuh"
#include "kernels/cuda/unroll.cuh"
#include "kernels/cuda/with_format.h"

namespace tandem::TANDEM_GPU {
namespace {

constexpr int kWarps = 8;
constexpr int kPairInputs = 64;

// Values of sub-block `j` of a pair as a lane has them: [0] of output 2 g, [1] of 2 g + 1; the first four are inputs
// 4 t.., the last four 16 + 4 t...
struct LaneValues {
  float of[2][8];
};

constexpr int input_of(int t, int i) { return (i < 4 ? 0 : 12) + 4 * t + i; }

template <Format F>
__device__ inline LaneValues read_values(const TiledMatrix& matrix, int tile, int pair, int j, int g, int t) {
  const std::uint8_t* from = matrix.tiles + static_cast<std::size_t>(tile) * matrix.tile_bytes;
  LaneValues out{};
  if constexpr (holds_floats(F)) {
    for (int i = 0; i < 8; ++i) {
      const int input = kPairInputs * pair + 32 * j + input_of(t, i);
      const FloatPair pair_of_outputs = input < matrix.cols ? read_floats<F>(from, input, g) : FloatPair{};
      out.of[0][i] = pair_of_outputs.of[0];
      out.of[1][i] = pair_of_outputs.of[1];
    }
  } else {
    const PairPlace<F> place(from, pair);
    RawCodes<F> raw;
    raw.read(place.codes + j * Layout<F>::kCodes, g, t);
    const Codes codes = unpack(raw, t);
    const Scales scales = read_scales<F>(place.side, place.group_end, j, g);
    TANDEM_UNROLL
    for (int i = 0; i < 8; ++i) {
      for (int output = 0; output < 2; ++output) {
        const int code = static_cast<int>(codes.word[i / 4 * 2 + output] >> 8 * (i % 4) & 255);
        const float scale = scales.scale[CodeRule<F>::kHalves ? i / 4 : 0][output];
        out.of[output][i] = value_of<F>(code, scale, scales.minimum[output]);
      }
    }
  }
  return out;
}

template <Format F>
__global__ void embed_kernel(Rows out, TiledMatrix matrix, const TokenId* tokens, RowCount count) {
  const int lane = static_cast<int>(threadIdx.x % kWarpLanes), g = lane / 4, t = lane % 4,
            pair = static_cast<int>(blockIdx.x * kWarps + threadIdx.x / kWarpLanes), row = static_cast<int>(blockIdx.y);
  if (!count.has(row)) return;
  const int token = tokens[row];
  if (g != token % kTileOutputs / 2 || pair * kPairInputs >= matrix.cols) return;
  for (int j = 0; j < 2; ++j) {
    const int first = kPairInputs * pair + 32 * j;
    if (first >= matrix.cols) return;
    const LaneValues values = read_values<F>(matrix, token / kTileOutputs, pair, j, g, t);
    for (int i = 0; i < 8; ++i) {
      if (first + input_of(t, i) < matrix.cols) out.row(row)[first + input_of(t, i)] = values.of[token % 2][i];
    }
  }
}

template <typename Number>
__device__ inline Number number_of(float value) {
  if constexpr (sizeof(Number) == 4) {
    return value;
  } else if constexpr (std::is_same_v<Number, __half>) {
    return __float2half_rn(value);
  } else {
    return __float2bfloat16_rn(value);
  }
}

template <Format F, typename Number>
__global__ void expand_panel_kernel(Number* out, TiledMatrix matrix, int first_tile) {
  const int lane = static_cast<int>(threadIdx.x % kWarpLanes), g = lane / 4, t = lane % 4,
            pair = static_cast<int>(blockIdx.x * kWarps + threadIdx.x / kWarpLanes),
            tile = static_cast<int>(blockIdx.y);
  for (int j = 0; j < 2; ++j) {
    const int first = kPairInputs * pair + 32 * j;
    if (first >= matrix.cols) return;
    const LaneValues values = read_values<F>(matrix, first_tile + tile, pair, j, g, t);
    for (int output = 0; output < 2; ++output) {
      Number* to = out + static_cast<std::size_t>(kTileOutputs * tile + 2 * g + output) * matrix.cols + first;
      TANDEM_UNROLL
      for (int i = 0; i < 8; ++i) {
        if (first + input_of(t, i) < matrix.cols) to[input_of(t, i)] = number_of<Number>(values.of[output][i]);
      }
    }
  }
}

constexpr dim3 grid_of(int cols, int rows) {
  const int pairs = (cols + kPairInputs - 1) / kPairInputs;
  return dim3((pairs + kWarps - 1) / kWarps, rows);
}

}  // namespace

void embed(Rows out, const TiledMatrix& matrix, const TokenId* tokens, RowCount count, cudaStream_t stream) {
  const auto run = [&]<Format F>() {
    launch(embed_kernel<F>, grid_of(matrix.cols, out.rows), dim3(kWarps * kWarpLanes), 0, stream, out, matrix, tokens,
           count);
  };
  holds_floats(matrix.format) ? with_float_format(matrix.format, run) : with_code_format(matrix.format, run);
}

void expand_panel(void* out, const TiledMatrix& matrix, int first_tile, int tiles, cudaStream_t stream) {
  const dim3 grid = grid_of(matrix.cols, tiles), block(kWarps * kWarpLanes);
  const auto run = [&]<Format F>() {
    constexpr Element kElement = panel_element(F);
    using Number = std::conditional_t<kElement == Element::f32, float,
                                      std::conditional_t<kElement == Element::bf16, __nv_bfloat16, __half>>;
    launch(expand_panel_kernel<F, Number>, grid, block, 0, stream, static_cast<Number*>(out), matrix, first_tile);
  };
  holds_floats(matrix.format) ? with_float_format(matrix.format, run) : with_code_format(matrix.format, run);
}

}  // namespace tandem::TANDEM_GPU
