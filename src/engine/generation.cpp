#include "src/engine/generation.h"

#include <algorithm>

namespace tandem {

std::string_view name_of(StopReason reason) {
  switch (reason) {
    case StopReason::stop:
      return "stop";
    case StopReason::grammar:
      return "grammar";
    case StopReason::length:
      return "length";
    case StopReason::context:
      return "context";
    case StopReason::time:
      return "time";
    case StopReason::cancel:
      return "cancel";
    case StopReason::none:
      break;
  }
  return "none";
}

Generation::Generation(Engine& engine, const Tokenizer& tokenizer, std::span<const TokenId> prompt, StopRules rules,
                       std::uint32_t dropped)
    : engine_(engine),
      rules_(std::move(rules)),
      stream_(tokenizer, rules_.end_ids, rules_.strings),
      start_seconds_(engine_.clock().seconds()) {
  result_.cached_tokens = engine_.start(prompt, dropped);
  result_.prompt_tokens = static_cast<int>(prompt.size());
}

bool Generation::prefill() {
  if (finished_ || before_step()) return false;
  return engine_.prefill_chunk();
}

bool Generation::advance() {
  if (finished_) return false;
  if (result_.ids.empty()) {
    if (before_step()) return false;
    while (engine_.prefill_chunk()) {
      if (before_step()) return false;
    }
    const TokenId first = engine_.first_token();
    first_token_seconds_ = engine_.clock().seconds();
    return accept({&first, 1});
  }
  if (before_step()) return false;
  return accept(engine_.step(rules_.max_tokens - static_cast<int>(result_.ids.size())));
}

// Ends the answer when time is up or the user cancelled.
bool Generation::before_step() {
  if (rules_.time_limit_seconds && engine_.clock().seconds() - start_seconds_ >= *rules_.time_limit_seconds) {
    finish(StopReason::time);
  } else if (rules_.cancel != nullptr && rules_.cancel->load()) {
    finish(StopReason::cancel);
  }
  return finished_;
}

// Takes committed tokens one by one, so that the first reason to stop in the text wins; what is behind it is cut.
bool Generation::accept(std::span<const TokenId> committed) {
  Constraint* const constraint = engine_.constraint();
  if (constraint != nullptr) constraint->state(engine_.context());
  for (std::size_t i = 0; i < committed.size(); ++i) {
    result_.ids.push_back(committed[i]);
    if (!engine_.logprobs().empty()) result_.logprobs.push_back(engine_.logprobs()[i]);
    const auto match = stream_.push(committed[i]);
    origins_.push_back({stream_.text().size(), source_of(i)});
    const int tokens = static_cast<int>(result_.ids.size());
    const bool whole = constraint != nullptr && constraint->complete(constraint->state_behind(tokens));
    const bool full = tokens >= rules_.max_tokens;
    if (match || whole || full) {
      const int behind = static_cast<int>(committed.size() - i) - 1;
      if (behind > 0) engine_.cut(behind);
      finish(match ? StopReason::stop : whole ? StopReason::grammar : StopReason::length);
      return false;
    }
  }
  if (engine_.room() == 0) finish(StopReason::context);
  return !finished_;
}

// The last token of a step is the target's own; those before it are the accepted path below the pending token.
DraftSource Generation::source_of(std::size_t committed) const {
  const std::span<const int> path = engine_.last_verdict().path();
  return committed + 1 < path.size() ? engine_.last_tree().source(path[committed + 1]) : DraftSource::none;
}

void Generation::finish(StopReason reason) {
  finished_ = true;
  const double now = engine_.clock().seconds();
  result_.stop_reason = reason;
  result_.text = stream_.text();
  result_.metrics = engine_.metrics();
  result_.wall_seconds = now - start_seconds_;
  const auto generated = static_cast<double>(result_.ids.size());
  if (generated > 0) result_.ttft_seconds = first_token_seconds_ - start_seconds_;
  if (generated > 1) {
    result_.tpot_seconds = (now - first_token_seconds_) / (generated - 1);
    if (*result_.tpot_seconds > 0) result_.decode_tokens_per_second = 1 / *result_.tpot_seconds;
  }
}

std::string Generation::take_text() {
  std::string text = stream_.take();
  if (finished_) text += stream_.finish();
  return text;
}

}  // namespace tandem
