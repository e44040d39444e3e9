// A model that only remembers: answers a forward pass from a recording and says what it would have taken.
#pragma once
#include <functional>
#include <span>
#include <vector>

#include "src/engine/recording.h"
#include "src/model/prefix_tree.h"

namespace tandem {

// Where a row lies: `length` tokens are before it. They are those of the text when depth is 0, the text up to the
// branch of place `anchor` and `depth` of its tokens when it is positive, and something else when it is negative.
struct ReplayPlace {
  int length = 0;
  int anchor = 0;
  int depth = 0;
};

// Stands in for the target or the draft of an engine while one answer is replayed. The engine, its drafter and its
// caches are those of a real run, so a sequence kept wrongly is answered for wrongly here too.
class ReplayModel final : public LanguageModel {
 public:
  struct Setup {
    std::span<const TokenId> text;               // prompt and what follows
    int prompt;                                  // tokens of it
    std::span<const RecordedBranch> branches{};  // by place behind the prompt; none for the target
    int vocabulary;                              // floats of a row
    int context, max_rows;
    // Writes the logits of a place over the whole row.
    std::function<void(const ReplayPlace&, std::span<float>)> write;
    // Told of every pass before its rows are written.
    std::function<void(int rows)> passed;
  };
  // What the setup's spans and functions refer to outlives this.
  explicit ReplayModel(Setup setup);

  Logits forward(const Batch& batch, KvCache& cache) override;
  std::span<const TokenId> head_tokens() const override { return {}; }
  void follow(std::span<const TokenId>) override {}
  void set_trace(ForwardTrace*) override {}
  // A step begins behind this many tokens of the text.
  void begin_step(int committed) { committed_ = committed; }

  KvCache make_cache(int capacity, KvType) const override { return prefixes_.make_cache(capacity); }
  const ModelSpec& spec() const override { return spec_; }
  int max_rows() const override { return setup_.max_rows; }
  int max_positions() const override { return setup_.context; }

 private:
  ReplayPlace place_of(Prefix prefix) const;
  Prefix root_of(const Batch& batch, const KvCache& cache);

  Setup setup_;
  ModelSpec spec_;
  PrefixTree prefixes_;
  int committed_ = 0;
  std::vector<ReplayPlace> places_{{}};  // by prefix
  std::vector<float> rows_;              // of the last pass, [rows, vocabulary]
};

}  // namespace tandem
