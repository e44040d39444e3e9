// Drafts with a model of another vocabulary (draft.retokenize).
#pragma once
#include "draft/admission.h"
#include "draft/drafter.h"
#include "draft/retokenize_text.h"

namespace tandem {

// A chain of deterministic children, so lossless under every rule whatever the draft is: the committed tokens' text
// goes to the draft in its own vocabulary, and what it writes comes back in the target's (SLEM, Timor et al. 2025,
// arXiv 2502.05202). One target token may take several draft steps, and one draft step may give several target tokens.
class RetokenizingDrafter final : public SteppingDrafter {
 public:
  // `draft`: proposes in its own vocabulary, its best token first, ids of drafting_mask() only. The tokenizers outlive
  // this. `constraint`: of the answer; null: none.
  RetokenizingDrafter(std::unique_ptr<Drafter> draft, const Tokenizer& target, const Tokenizer& draft_words,
                      std::shared_ptr<Constraint> constraint = nullptr);

  void observe(const Observation&, const Context&) override {}
  void begin() override { draft_->begin(); }
  std::string take_warning() override { return draft_->take_warning(); }
  void reset() override;
  std::string_view name() const override { return "model"; }

  // Below the path of first children; nothing where that ends the text.
  void grow(TokenTree& tree, Context& context, LengthPolicy& policy) override;
  DraftQuestion first(const TokenTree& tree, Context& context) override;

 private:
  enum class Wrote { nothing, text, last };  // last: no further step can bring more
  bool read(const TokenTree& tree, int node, Context& context);
  int write(const TokenTree& tree, int node, LengthPolicy& policy);
  Wrote draft_step(const DraftQuestion& question, LengthPolicy& policy);
  DraftQuestion question(const TokenTree& tree, int node, std::size_t candidate, double confidence) const;

  std::unique_ptr<Drafter> draft_;
  const Tokenizer& target_;
  const Tokenizer& draft_words_;
  ControlMap ends_;  // the draft's to the target's
  Translation translation_;
  Continuation continuation_;
  bool begins_ = false;  // the draft's next token begins a text
  Context draft_context_;
  Admission admission_;
};

}  // namespace tandem
