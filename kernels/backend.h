// The ops a forward pass needs. One op = one signature = one reference = N implementations; the pass is written once
// against this interface (src/model/transformer.cpp).
//
// Row invariance (CPU backends): row i of every output holds the same bits whatever other rows are in the call,
// whatever the row count and the thread count. Rows of one pass read each other's keys and values after rounding to the
// cache's type.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "kernels/quant/format.h"
#include "src/base/mapped_file.h"
#include "src/base/picking.h"
#include "src/base/tensor.h"
#include "src/base/thread_pool.h"
#include "src/base/types.h"

namespace tandem {

// A matrix [rows, cols] = [outputs, inputs] (or a vector: rows 1) as its backend keeps it. `bytes` is what the file
// stores.
class Weight {
 public:
  Weight(Format format, int rows, int cols, std::size_t bytes) : format(format), rows(rows), cols(cols), bytes(bytes) {}
  virtual ~Weight() = default;
  const Format format;
  const int rows, cols;
  const std::size_t bytes;
};

// Where a weight lies. With a `file`, both outlive the weight made from them; without one, `data` need only live
// through load() for WeightUse::matmul and vector.
struct WeightSource {
  Format format;
  int rows, cols;
  std::span<const std::byte> data;
  const MappedFile* file;  // lets a backend that repacks release the pages it has read; null for data made in memory
};

enum class WeightUse : std::uint8_t {
  lookup,  // embed() only
  matmul,  // matmul() only
  both,    // tied embedding
  vector   // gains and biases: always F32 after loading
};

// Memory of a backend; freed with the object. Only the backend's ops, write() and read() may touch what data() points
// to: it need not be the host's, unless it is of allocate_host().
class Buffer {
 public:
  virtual ~Buffer() = default;
  virtual std::byte* data() = 0;
};

// out[i] = weight . x[i] (+ bias). `out.cols` equals weight->rows.
struct Projection {
  Rows out;
  const Weight* weight;
  const Weight* bias;  // null for none
};

enum class RopeStyle : std::uint8_t {
  adjacent,  // rotates pairs (2i, 2i+1): llama in GGUF
  halves     // rotates pairs (i, i + dims/2): NEOX, qwen2
};

// cos and sin of position x frequency, each [positions, dims / 2]; owned by the model, computed in double.
struct RopeTable {
  const float* cos;
  const float* sin;
  int dims;  // rotated leading dimensions of a head
  RopeStyle style;
};

struct AttentionParams {
  float scale;         // multiplies query . key
  int window = 0;      // visible last positions, the row's own included; 0 = all
  float soft_cap = 0;  // scaled scores s become soft_cap tanh(s / soft_cap), before the softmax; 0 = as they are
};

// Which rows of this pass a row may see besides the cache: all before it and itself (causal), or its ancestors.
// ancestors[i] has bit j set when row j is an ancestor of row i, or i itself; parents come before children.
struct Mask {
  std::span<const std::uint64_t> ancestors;  // empty = causal; else one a row, at most 64 rows
  bool causal() const { return ancestors.empty(); }
};

// gelu is the approximation by tanh: x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) (Hendrycks & Gimpel 2016).
enum class Activation : std::uint8_t { silu, gelu };

// A device that a backend computes on, beside the host.
struct Device {
  std::string name;
  double bytes_per_second;  // the peak of its memory; 0 where it does not tell
};

// What a device has been asked so far.
struct DeviceCounts {
  std::uint64_t bytes_to_host = 0;  // copied from its memory
  std::uint64_t steps = 0;          // runs of launches that were sent together
  std::uint64_t replays = 0;        // of those: sent as one graph
  std::size_t graphs = 0;           // kept at present
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;  // for reports, e.g. "cpu-avx512"
  // Nothing where the host computes: then what the host's memory and threads give at best is the yardstick.
  virtual std::optional<Device> device() const { return std::nullopt; }
  // Zeros where the host computes.
  virtual DeviceCounts counts() const { return {}; }
  virtual int threads() const = 0;
  // The host's threads, free between ops: for work on weights before they are loaded.
  virtual ThreadPool& pool() = 0;
  virtual KvType preferred_kv_type() const = 0;

  // Prepares a weight (may repack). Throws Error(model) for a shape it cannot take.
  virtual std::unique_ptr<Weight> load(const WeightSource& source, WeightUse use) = 0;
  // Zeroed memory, aligned to 64 bytes at least.
  virtual std::unique_ptr<Buffer> allocate(std::size_t bytes) = 0;
  // Memory of the host that read() copies to fastest.
  virtual std::unique_ptr<Buffer> allocate_host(std::size_t bytes) { return allocate(bytes); }
  // Copies between the host and this backend's memory, done on return.
  virtual void write(std::byte* to, std::span<const std::byte> from) { std::memcpy(to, from.data(), from.size()); }
  virtual void read(std::span<std::byte> to, const std::byte* from) { std::memcpy(to.data(), from, to.size()); }
  // Asked before a model is loaded: throws Error(device), naming `what` and the bytes needed and free, when memory that
  // cannot grow has no room for them.
  virtual void require_room(std::size_t /*bytes*/, std::string_view /*what*/) {}
  // Host memory that holds `x`, rows contiguous; valid until the next op.
  virtual std::span<const float> download(Rows x) = 0;
  // The token after each row of logits where this backend can tell without sending the row, else nothing. A token is
  // the one that the sampler draws from the same bits; where rounding could decide, or no token is usable, there is a
  // negative number instead. Valid until the next op.
  virtual std::span<const TokenId> pick(Rows /*logits*/, const Picking& /*picking*/) { return {}; }
  // The picking.candidates largest logits of each row, [rows, candidates], largest first, ties to the lowest id, where
  // this backend finds them; else nothing. Valid until the next op.
  virtual std::span<const Candidate> best(Rows /*logits*/, const Picking& /*picking*/) { return {}; }

  virtual void embed(Rows out, const Weight& table, std::span<const TokenId> tokens) = 0;
  // out = x / sqrt(mean(x^2) + epsilon) * gain, a row at a time (Zhang & Sennrich 2019). out may be x.
  virtual void rms_norm(Rows out, Rows x, const Weight& gain, float epsilon) = 0;
  // Several matrices over one input, so that it is quantised once.
  virtual void matmul(std::span<const Projection> projections, Rows x) = 0;
  // Rotates every head of every row in place; `heads.cols` is a multiple of head_dim (Su et al. 2021).
  virtual void rope(Rows heads, int head_dim, std::span<const Position> positions, const RopeTable& table) = 0;
  // Writes rows 0.. of keys and values [rows, kv_heads * head_dim] into places base, base + 1, ...
  virtual void store_kv(const KvLayer& layer, int base, Rows keys, Rows values) = 0;
  // Softmax attention of each row over places [0, base) and, of its own pass, the places base + j that the mask shows.
  // Keys are taken in path order: position of a key = its place on the row's path, so a row's sums never depend on the
  // tree. queries and out: [rows, heads * head_dim]; heads is a multiple of layer.kv_heads. A ring needs a window, and
  // slots for it and all rows: window + rows - 1 <= capacity.
  virtual void attention(Rows out, Rows queries, const KvLayer& layer, int base, const AttentionParams& params,
                         Mask mask) = 0;
  // out = activation(gate) * up. out may be gate.
  virtual void gated(Rows out, Rows gate, Rows up, Activation activation) = 0;
  virtual void add(Rows y, Rows x) = 0;          // y += x
  virtual void scale(Rows x, float factor) = 0;  // x *= factor
  virtual void soft_cap(Rows x, float cap) = 0;  // x = cap tanh(x / cap)
  virtual void gather_rows(Rows out, Rows x, std::span<const int> rows) = 0;
  // Place base + path[i] moves to base + i, ascending; path[i] >= i and strictly ascending.
  virtual void move_kv(const KvLayer& layer, int base, std::span<const int> path) = 0;

  // Runs of ops that a backend may fuse; an override gives the bits of the body here.
  // hidden += x; out = rms_norm(hidden). out may be x.
  virtual void add_rms_norm(Rows out, Rows hidden, Rows x, const Weight& gain, float epsilon) {
    add(hidden, x);
    rms_norm(out, hidden, gain, epsilon);
  }
  // Rotates queries and keys and stores keys and values; what `keys` holds afterwards is unspecified.
  virtual void rope_store_kv(Rows queries, Rows keys, Rows values, std::span<const Position> positions,
                             const RopeTable& table, const KvLayer& layer, int base) {
    rope(queries, layer.head_dim, positions, table);
    rope(keys, layer.head_dim, positions, table);
    store_kv(layer, base, keys, values);
  }
  // gate.out = activation(gate . x) * (up . x); what up.out holds afterwards is unspecified.
  virtual void gated_matmul(const Projection& gate, const Projection& up, Rows x, Activation activation) {
    const Projection both[] = {gate, up};
    matmul(both, x);
    gated(gate.out, gate.out, up.out, activation);
  }
};

}  // namespace tandem
