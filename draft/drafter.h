// Proposes tokens for the target to check. A drafter is one file; the registry lists them.
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "draft/length_policy.h"
#include "src/base/logits.h"
#include "src/base/token_tree.h"
#include "src/sample/context.h"

namespace tandem {

// What became of a proposal. The tree and verdict are those of the step that just ended; `logits` has the target's row
// of each node and lives until the target's next pass.
struct Observation {
  const TokenTree& tree;
  const Verdict& verdict;
  const Logits& logits;
};

// Drafted tokens on the context, popped however the proposal ends.
class Pushed {
 public:
  explicit Pushed(Context& context) : context_(context), size_(context.size()) {}
  ~Pushed() { context_.pop(context_.size() - size_); }
  Pushed(const Pushed&) = delete;
  Pushed& operator=(const Pushed&) = delete;

 private:
  Context& context_;
  int size_;
};

class Drafter {
 public:
  virtual ~Drafter() = default;

  // A proposal below the pending token, which is the last token of `context`. Asks `policy` before each draft step and
  // each row. May push and pop on the context; leaves it as it was. The tree lives until the next call.
  virtual const TokenTree& propose(Context& context, LengthPolicy& policy) = 0;

  // Called once after each step; the context already holds the newly committed tokens.
  virtual void observe(const Observation& observation, const Context& context) = 0;

  // A prompt begins, whatever came before it. What was learned from another text must not decide about this one, so
  // that its drafts are those of a fresh process; a cache that the prompt goes on from may stay.
  virtual void begin() {}

  // Something the user should know once, e.g. that the draft context is full and drafting has stopped; empty = nothing
  // new.
  virtual std::string take_warning() { return {}; }

  // Forgets everything about the sequence (a new, unrelated prompt follows).
  virtual void reset() = 0;

  virtual std::string_view name() const = 0;
};

// A drafter that can also fill a tree which another source has begun.
class GrowingDrafter : public Drafter {
 public:
  const TokenTree& propose(Context& context, LengthPolicy& policy) final {
    tree_.clear(context.tokens().back());
    grow(tree_, context, policy);
    return tree_;
  }
  // Adds nodes below or beside those that are there; `context` ends with the pending token and is left so.
  virtual void grow(TokenTree& tree, Context& context, LengthPolicy& policy) = 0;

 private:
  TokenTree tree_;
};

// One whose nodes cost draft steps.
class SteppingDrafter : public GrowingDrafter {
 public:
  // The question about the draft step behind the path of first children, with which grow() would begin there.
  virtual DraftQuestion first(const TokenTree& tree, Context& context) = 0;
};

}  // namespace tandem
