#include "src/engine/engine.h"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <optional>

#include "src/base/error.h"

namespace tandem {

Engine::Engine(EngineParts parts)
    : target_(*parts.target),
      cache_(std::move(parts.cache)),
      drafter_(std::move(parts.drafter)),
      policy_(std::move(parts.policy)),
      verifier_(std::move(parts.verifier)),
      sampler_(std::move(parts.sampler)),
      prefill_chunk_(std::clamp(parts.prefill_chunk, 1, target_.max_rows())),
      wanted_logprobs_(parts.logprobs),
      clock_(*parts.clock) {
  const std::size_t rows = std::max(target_.max_rows(), kMaxTreeNodes);
  tokens_.reserve(rows);
  positions_.reserve(rows);
  ancestors_.reserve(kMaxTreeNodes);
  if (wanted_logprobs_ > 0) logprobs_.reserve(kMaxTreeNodes);
  rows_.resize(kMaxTreeNodes);
  std::iota(rows_.begin(), rows_.end(), 0);
  context_.reserve(cache_.capacity() + kMaxTreeNodes);
  noise_positions_.reserve(kMaxTreeNodes);
  picking_ = sampler_.picking();
  if (!picking_) return;
  usable_ = sampler_.mask().bits(target_.spec().vocab);
  picking_->usable = usable_;
}

int Engine::start(std::span<const TokenId> prompt, std::uint32_t dropped) {
  const int length = static_cast<int>(prompt.size());
  if (length == 0) fail(ErrorKind::input, "prompt: expected at least 1 token, got none");
  if (length >= cache_.capacity()) {
    fail(ErrorKind::input, "prompt: {} tokens leave no room in a context of {} tokens (target.context)", length,
         cache_.capacity());
  }
  const std::span<const TokenId> held = context_.tokens().first(cache_.size());
  const auto [mine, theirs] = std::mismatch(held.begin(), held.end(), prompt.begin(), prompt.end());
  const int kept = cache_.truncate(std::min(static_cast<int>(mine - held.begin()), length - 1));
  context_.clear();
  context_.push(prompt);
  context_.set_dropped(dropped);
  metrics_ = {};
  tree_ = nullptr;
  if (constraint() != nullptr) constraint()->begin(length);
  drafter_->begin();
  policy_->reset();
  return kept;
}

bool Engine::prefill_chunk() {
  const int left = context_.size() - cache_.size();
  if (left == 0) return false;
  const ScopedSeconds timer(metrics_.seconds.prefill, clock_);
  const int rows = std::min(left, prefill_chunk_);
  positions_.resize(rows);
  std::iota(positions_.begin(), positions_.end(), cache_.size());
  const int last = rows - 1;
  const bool final_chunk = rows == left;
  logits_ = target_.forward({.tokens = context_.tokens().subspan(cache_.size(), rows),
                             .positions = positions_,
                             .ancestors = {},
                             .logits_rows = final_chunk ? std::span(&last, 1) : std::span<const int>(),
                             .picking = final_chunk ? picking_for(TokenTree(context_.tokens().back())) : nullptr},
                            cache_);
  return !final_chunk;
}

TokenId Engine::first_token() {
  assert(cache_.size() == context_.size());
  const ScopedSeconds timer(metrics_.seconds.sample, clock_);
  TokenTree alone(context_.tokens().back());
  verdict_ = verifier_->verify(alone, logits_, sampler_, context_);
  record_logprobs();
  metrics_.generated = 1;
  return context_.tokens().back();
}

// What drafts are worth depends on how much may still follow.
int Engine::tokens_left(int wanted) {
  const int most = std::min(wanted, room());
  if (constraint() == nullptr) return most;
  const std::optional<int> left = constraint()->most_left(constraint()->state(context_));
  return left ? std::clamp(*left, 1, most) : most;
}

const TokenTree& Engine::propose(int wanted) {
  const ScopedSeconds timer(metrics_.seconds.draft, clock_);
  const int depth = tokens_left(wanted) - 1;
  // A tree of n nodes takes n slots from the pending token on, even when most of them are rolled back.
  const int nodes = std::min(kMaxTreeNodes, cache_.capacity() - cache_.size());
  policy_->begin_step({depth, nodes, context_.size()});
  return drafter_->propose(context_, *policy_);
}

// What the rule needs of a pass over a tree whose pending token ends the context. Null: the rows themselves.
const Picking* Engine::picking_for(const TokenTree& tree) {
  if (!picking_) return nullptr;
  const bool tokens = sampler_.greedy() || tree.size() == 1 || verifier_->follows_picks();
  picking_->candidates = tokens ? 0 : sampler_.candidates(target_.spec().vocab);
  if (!tokens) return picking_->candidates > 0 ? &*picking_ : nullptr;
  noise_positions_.resize(tree.size());
  for (int i = 0; i < tree.size(); ++i) {
    noise_positions_[i] = context_.position() + static_cast<std::uint32_t>(tree.depth(i));
  }
  picking_->positions = noise_positions_;
  return &*picking_;
}

void Engine::verify_pass(const TokenTree& tree) {
  const double start = clock_.seconds();
  const int rows = tree.size();
  tokens_.resize(rows);
  positions_.resize(rows);
  ancestors_.resize(rows);
  for (int i = 0; i < rows; ++i) {
    tokens_[i] = tree.token(i);
    positions_[i] = cache_.size() + tree.depth(i);
    ancestors_[i] = tree.ancestors(i);
  }
  logits_ = target_.forward({.tokens = tokens_,
                             .positions = positions_,
                             .ancestors = ancestors_,
                             .logits_rows = std::span(rows_).first(static_cast<std::size_t>(rows)),
                             .picking = picking_for(tree)},
                            cache_);
  const double seconds = clock_.seconds() - start;
  metrics_.seconds.verify += seconds;
  metrics_.seconds_by_rows[rows] += seconds;
  ++metrics_.steps_by_rows[rows];
}

// The context ends with the tokens just committed, one drawn from the row of each node of the path.
void Engine::record_logprobs() {
  logprobs_.clear();
  if (wanted_logprobs_ == 0) return;
  const std::span<const int> path = verdict_.path();
  const std::span<const TokenId> committed = context_.tokens().last(path.size());
  for (std::size_t i = 0; i < path.size(); ++i) {
    logprobs_.push_back(token_logprobs(logits_.row(path[i]), committed[i], wanted_logprobs_, sampler_.mask()));
  }
}

std::span<const TokenId> Engine::step(int wanted) {
  assert(wanted >= 1 && room() >= 1);
  assert(cache_.size() == context_.size() - 1);
  const int base = cache_.size();
  const int committed = context_.size();
  const StageSeconds before = metrics_.seconds;
  if (constraint() != nullptr) constraint()->make_room();
  const TokenTree& tree = propose(wanted);
  const double propose_seconds = metrics_.seconds.draft - before.draft;
  tree_ = &tree;
  assert(tree.token(0) == context_.tokens().back());
  verify_pass(tree);
  try {
    const ScopedSeconds timer(metrics_.seconds.sample, clock_);
    verdict_ = verifier_->verify(tree, logits_, sampler_, context_);
    record_logprobs();
  } catch (...) {  // a row without a usable number: the proposal's rows must not pass for committed ones
    cache_.keep_path(base, {});
    throw;
  }
  {
    const ScopedSeconds timer(metrics_.seconds.rollback, clock_);
    cache_.keep_path(base, verdict_.path());
  }
  {
    const ScopedSeconds timer(metrics_.seconds.draft, clock_);
    drafter_->observe({tree, verdict_, logits_}, context_);
    policy_->observe(tree, verdict_);
    policy_->observe_seconds(propose_seconds, metrics_.seconds.verify - before.verify, tree.size());
  }
  metrics_.record(tree, verdict_);
  metrics_.generated += context_.size() - committed;
  return context_.tokens().subspan(static_cast<std::size_t>(committed));
}

void Engine::cut(int count) {
  const ScopedSeconds timer(metrics_.seconds.rollback, clock_);
  context_.pop(count);
  [[maybe_unused]] const int held = cache_.truncate(std::min(cache_.size(), context_.size()));  // start() asks again
  metrics_.cut += count;
  metrics_.generated -= count;
}

void Engine::reset() {
  context_.clear();
  cache_.clear();
  drafter_->reset();
}

void Engine::restore(std::span<const TokenId> tokens, int lost, std::span<const std::byte> layers) {
  reset();
  cache_.restore(static_cast<int>(tokens.size()), lost, layers);
  context_.push(tokens);
}

double Engine::measure_pass(int rows) {
  const int base = cache_.size();
  tokens_.assign(rows, 0);  // any ids do: time does not depend on what the tokens say
  positions_.resize(rows);
  std::iota(positions_.begin(), positions_.end(), base);
  ancestors_.resize(rows);
  for (int i = 0; i < rows; ++i) ancestors_[i] = ~std::uint64_t{0} >> (kMaxTreeNodes - 1 - i);
  const double start = clock_.seconds();
  logits_ = target_.forward({tokens_, positions_, ancestors_, std::span(rows_).first(static_cast<std::size_t>(rows))},
                            cache_);
  const double seconds = clock_.seconds() - start;
  cache_.keep_path(base, {});
  return seconds;
}

double Engine::measure_single_row() {
  if (cache_.size() >= cache_.capacity()) return 0;
  double best = 0;
  for (int repeat = 0; repeat < 4; ++repeat) {  // the first warms caches and scratch
    const double seconds = measure_pass(1);
    if (repeat > 0) best = repeat == 1 ? seconds : std::min(best, seconds);
  }
  return best;
}

}  // namespace tandem
