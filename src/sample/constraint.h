// What an answer must look like, token by token: the part of it that sampling, drafting and stopping see.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "src/base/types.h"
#include "src/sample/context.h"
#include "src/sample/token_mask.h"

namespace tandem {

// Follows the answer in a context, whatever was pushed on it and popped since: it compares tokens, so there is nothing
// to undo. States are numbers; equal ones admit the same. One sequence at a time, not thread-safe; allocates only for
// states that no text has led to before.
class Constraint {
 public:
  virtual ~Constraint() = default;

  // An answer begins behind the first `prompt` tokens of the contexts to come. States of before mean nothing any more.
  virtual void begin(int prompt) = 0;

  // The state behind the context, which holds the prompt.
  virtual int state(const Context& context) = 0;
  // The state behind the first `tokens` of the answer that state() was last asked about.
  virtual int state_behind(int tokens) const = 0;
  // The state behind one more token, admitted or not.
  virtual int after(int state, TokenId token) = 0;

  // Ids that may follow; empty when no token of the vocabulary fits. Valid until the next call.
  virtual const TokenMask& mask(int state) = 0;
  virtual bool admits(int state, TokenId token) = 0;
  // Nothing but the end may follow.
  virtual bool complete(int state) = 0;
  // The only id that may follow, -1 when there are more.
  virtual TokenId only(int state) = 0;
  // Where the next bytes of the text are certain, the token that spells the most of them; else -1.
  virtual TokenId likely(int state) = 0;

  // Tokens that the answer may still have, an end id included, at most; nothing when that is unlimited or takes too
  // long to find out.
  virtual std::optional<int> most_left(int state) = 0;

  // For errors about a state that admits nothing: the end of the text so far, and what was expected.
  virtual std::string explain(const Context& context) = 0;
};

}  // namespace tandem
