// Prefill and the step loop: propose -> forward -> verify -> keep -> observe.
#pragma once
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "draft/drafter.h"
#include "src/base/metrics.h"
#include "src/base/stopwatch.h"
#include "src/model/language_model.h"
#include "src/sample/logprobs.h"
#include "verify/verifier.h"

namespace tandem {

struct EngineParts {
  LanguageModel* target;  // outlives the engine
  KvCache cache;          // of the target
  std::unique_ptr<Drafter> drafter;
  std::unique_ptr<LengthPolicy> policy;
  std::unique_ptr<Verifier> verifier;
  Sampler sampler;
  int prefill_chunk;
  int logprobs = 0;                      // best alternatives to record with each committed token; 0 records nothing
  const Clock* clock = &steady_clock();  // outlives the engine
};

// One sequence. Invariant between calls: the target's cache holds the first cache().size() tokens of context(), and
// once the first token is drawn the last token (the pending one) is committed and not yet in the cache.
class Engine {
 public:
  explicit Engine(EngineParts parts);

  // Begins a sequence with this prompt. The longest prefix that the cache already holds is kept (all but the last id at
  // most), the rest is rolled back; nothing is kept when sliding windows have moved on too far (KvCache::truncate).
  // Returns how many ids were kept. `dropped`: tokens of the conversation that left the context before this prompt,
  // which count for the positions of noise. Throws Error(input) for an empty prompt, or one of capacity or more ids.
  int start(std::span<const TokenId> prompt, std::uint32_t dropped = 0);
  // Prefills one more chunk. False when the whole prompt is in the cache.
  bool prefill_chunk();
  // Draws the first token from the prompt's last row; it becomes the pending token.
  TokenId first_token();

  // One step: proposes at most `wanted` - 1 tokens and commits 1..depth + 1 of them. Needs room() >= 1. Never stops by
  // itself; not after cut(), which leaves no pending token. The span is valid until the next call. Throws
  // Error(numeric) for a row of logits without a usable number; nothing is committed then.
  std::span<const TokenId> step(int wanted);

  // Log-probabilities of the tokens that the last step() or first_token() committed, one each; empty unless they are
  // recorded. Functions of the target's rows alone: the same whatever was drafted. Valid until the next call.
  std::span<const TokenLogprobs> logprobs() const { return logprobs_; }

  // Drops the last `count` committed tokens from context and cache: what came after a stop. A start() must follow.
  void cut(int count);
  // Forgets the sequence: the next prompt is prefilled from its first token.
  void reset();
  // Goes on from a sequence of another engine over the same target: its tokens and what KvCache::restore() takes of its
  // cache. At most capacity tokens. A start() must follow.
  void restore(std::span<const TokenId> tokens, int lost, std::span<const std::byte> layers);

  int room() const { return cache_.capacity() - context_.size(); }  // tokens that still fit into the context
  const Context& context() const { return context_; }
  const KvCache& cache() const { return cache_; }
  // Of the last step(): its proposal. Of the last step() or first_token(): what was decided, and the target's logits, a
  // row a node (the prompt's last row for the first token). All valid until the next call.
  const TokenTree& last_tree() const { return *tree_; }
  const Verdict& last_verdict() const { return verdict_; }
  const Logits& last_logits() const { return logits_; }
  Constraint* constraint() { return sampler_.constraint(); }  // of the answer; null: none
  Sampler& sampler() { return sampler_; }  // its distributions are functions of their arguments: asking changes nothing
  // Lets `trace` observe every pass of the target; see LanguageModel::set_trace.
  void set_trace(ForwardTrace* trace) { target_.set_trace(trace); }
  Metrics& metrics() { return metrics_; }
  Drafter& drafter() { return *drafter_; }
  const Verifier& verifier() const { return *verifier_; }
  const Clock& clock() const { return clock_; }

  // Seconds of one row of the target at the present cache size: best of a few passes, rolled back. For estimates in
  // reports.
  double measure_single_row();
  // Seconds of one pass over a chain of `rows` <= room() rows there, with the logits of all; rolled back. Overwrites
  // last_logits().
  double measure_pass(int rows);

 private:
  const TokenTree& propose(int wanted);
  int tokens_left(int wanted);
  void verify_pass(const TokenTree& tree);
  const Picking* picking_for(const TokenTree& tree);
  void record_logprobs();

  LanguageModel& target_;
  KvCache cache_;
  std::unique_ptr<Drafter> drafter_;
  std::unique_ptr<LengthPolicy> policy_;
  std::unique_ptr<Verifier> verifier_;
  Sampler sampler_;
  int prefill_chunk_;
  int wanted_logprobs_;
  const Clock& clock_;
  Context context_;
  Metrics metrics_;
  const TokenTree* tree_ = nullptr;
  Logits logits_;  // of the last pass
  Verdict verdict_;
  std::vector<TokenLogprobs> logprobs_;  // of the tokens committed last
  std::optional<Picking> picking_;       // of the sampler's draws; nothing: the target's rows have to be looked at
  std::vector<std::uint32_t> usable_;    // the sampler's mask, as picking_ has it
  // scratch of one pass, sized once
  std::vector<TokenId> tokens_;
  std::vector<Position> positions_;
  std::vector<std::uint64_t> ancestors_;
  std::vector<int> rows_;
  std::vector<std::uint32_t> noise_positions_;
};

}  // namespace tandem
