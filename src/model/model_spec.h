// What an architecture file says about a model: sizes, flags and tensor names. No maths.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "kernels/backend.h"

namespace tandem {

// Tensors that an architecture reads into the spec: divisors of rope's frequencies, as Llama 3 and as longrope have
// them.
inline constexpr std::string_view kRopeFactors = "rope_freqs.weight", kRopeLongFactors = "rope_factors_long.weight",
                                  kRopeShortFactors = "rope_factors_short.weight";

struct ModelSpec {
  std::string architecture;  // general.architecture
  int layers = 0;
  int width = 0;     // of the residual stream
  int heads = 0;     // query heads
  int kv_heads = 0;  // key/value heads; heads is a multiple of it
  int head_dim = 0;
  int ffn = 0;      // width of the feed-forward block
  int vocab = 0;    // rows of the embedding, padding included
  int context = 0;  // longest sequence the model was made for
  float norm_epsilon = 0;
  double rope_base = 10000;
  int rope_dims = 0;                       // rotated leading dimensions of a head
  std::vector<double> rope_divisors;       // of the frequencies of the rope_dims / 2 pairs; empty = all 1
  std::vector<double> rope_long_divisors;  // in their place where more than rope_original_context positions are run
  int rope_original_context = 0;           // positions that the model was first trained on
  double rope_magnitude = 1;               // multiplies cos and sin; sliding layers with a base of their own have none
                                           // of this scaling
  RopeStyle rope_style = RopeStyle::adjacent;
  bool qkv_bias = false;
  bool fused_qkv = false;      // attn_qkv holds the rows of query, key and value
  bool fused_gate_up = false;  // ffn_up holds the rows of gate and up
  bool qk_norm = false;        // an RMS norm of each query and key head before rope
  Activation activation = Activation::silu;
  bool post_norms = false;        // RMS norms of what attention and feed-forward add to the residual stream
  double embedding_scale = 1;     // multiplies the embeddings
  double attention_scale = 0;     // multiplies query . key
  double attention_soft_cap = 0;  // of scaled scores; 0 = none
  double final_soft_cap = 0;      // of logits; 0 = none
  int window = 0;                 // last positions that sliding layers see, the row's own included
  std::vector<bool> sliding;      // a flag a layer; empty = none slides
  double sliding_rope_base = 0;   // of sliding layers; 0 = rope_base

  // Tensor names; a layer's are "blk.<layer>." + the part + ".weight" or ".bias".
  std::string embedding = "token_embd.weight";
  std::string output_norm = "output_norm.weight";
  std::string output = "output.weight";  // absent in the file: the embedding is tied

  // Whether a model that is to run so many positions takes rope_long_divisors.
  bool ropes_long(int positions) const { return !rope_long_divisors.empty() && positions > rope_original_context; }
  int query_width() const { return heads * head_dim; }
  int kv_width() const { return kv_heads * head_dim; }
  bool slides(int layer) const { return !sliding.empty() && sliding[static_cast<std::size_t>(layer)]; }
  int window_of(int layer) const { return slides(layer) ? window : 0; }  // 0 = all positions
};

}  // namespace tandem
