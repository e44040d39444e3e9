// One answer, pulled step by step: nothing calls upward, the caller writes what it takes.
#pragma once
#include <atomic>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/engine/engine.h"
#include "src/text/text_stream.h"

namespace tandem {

struct StopRules {
  std::vector<TokenId> end_ids{};  // the model's and the user's
  std::vector<std::string> strings{};
  int max_tokens = 512;
  std::optional<double> time_limit_seconds{};  // of the whole answer, prefill included; checked between steps
  const std::atomic<bool>* cancel = nullptr;
};

enum class StopReason { none, stop, grammar, length, context, time, cancel };
std::string_view name_of(StopReason reason);

struct GenerationResult {
  std::vector<TokenId> ids;             // the end id, or the tokens that complete a stop string, included
  std::vector<TokenLogprobs> logprobs;  // one an id where the engine records them, else empty
  std::string text;                     // raw bytes, without either
  StopReason stop_reason = StopReason::none;
  int prompt_tokens = 0;
  int cached_tokens = 0;               // of the prompt, found in the cache
  std::optional<double> ttft_seconds;  // from the start to the first token; load is not in it
  std::optional<double> tpot_seconds;  // a token after the first; null when there was none
  std::optional<double> decode_tokens_per_second;
  double wall_seconds = 0;
  Metrics metrics;
};

// Which part of an answer's text a token wrote, and what drafted it.
struct TextOrigin {
  std::size_t end;     // bytes of the text up to and with this token
  DraftSource source;  // of an accepted draft; none: the target's own draw
};

class Generation {
 public:
  // Begins with this prompt; see Engine::start for `dropped` and for errors. Everything passed outlives the generation.
  Generation(Engine& engine, const Tokenizer& tokenizer, std::span<const TokenId> prompt, StopRules rules,
             std::uint32_t dropped = 0);

  // Prefills one chunk. False when done, cancelled or out of time: go on with advance(). `prefilled()` of
  // `prompt_tokens` are in the cache.
  bool prefill();
  int prefilled() const { return engine_.cache().size(); }
  int prompt_tokens() const { return result_.prompt_tokens; }

  // Commits the first token or one step. False when the answer has ended.
  bool advance();

  // Text that is certain by now and was not taken before.
  std::string take_text();

  // Of each token so far, in order.
  std::span<const TextOrigin> origins() const { return origins_; }

  // Complete once advance() has returned false.
  const GenerationResult& result() const { return result_; }

 private:
  bool accept(std::span<const TokenId> committed);
  DraftSource source_of(std::size_t committed) const;
  bool before_step();
  void finish(StopReason reason);

  Engine& engine_;
  StopRules rules_;
  TextStream stream_;
  std::vector<TextOrigin> origins_;
  double start_seconds_;
  double first_token_seconds_ = 0;
  GenerationResult result_;
  bool finished_ = false;
};

}  // namespace tandem
