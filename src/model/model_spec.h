// What an architecture file says about a model: sizes, flags and tensor names. No maths.
#pragma once
#include <string>
#include <vector>

#include "kernels/backend.h"

namespace tandem {

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
  int rope_dims = 0;  // rotated leading dimensions of a head
  RopeStyle rope_style = RopeStyle::adjacent;
  bool qkv_bias = false;
  bool qk_norm = false;  // an RMS norm of each query and key head before rope
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

  int query_width() const { return heads * head_dim; }
  int kv_width() const { return kv_heads * head_dim; }
  bool slides(int layer) const { return !sliding.empty() && sliding[static_cast<std::size_t>(layer)]; }
  int window_of(int layer) const { return slides(layer) ? window : 0; }  // 0 = all positions
};

}  // namespace tandem
