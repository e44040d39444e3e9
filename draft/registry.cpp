#include "draft/registry.h"

#include <array>
#include <string_view>

#include "draft/constrained.h"
#include "draft/hybrid.h"
#include "draft/model_drafter.h"
#include "draft/ngram.h"
#include "draft/none.h"
#include "draft/recycle.h"
#include "draft/retokenize.h"
#include "draft/reuse.h"
#include "src/base/error.h"

namespace tandem {
namespace {

std::unique_ptr<ModelDrafter> make_model_drafter(const DrafterSetup& setup) {
  if (setup.model == nullptr) {
    fail(ErrorKind::config, "draft.kind: {} needs a draft model, got no draft.model", setup.kind);
  }
  return std::make_unique<ModelDrafter>(*setup.model, setup.context, setup.kv_type, setup.sampling, setup.noise,
                                        setup.mask, setup.draw, setup.constraint);
}

std::unique_ptr<NgramDrafter> make_ngram_drafter(const DrafterSetup& setup) {
  return std::make_unique<NgramDrafter>(setup.min_match, setup.max_match, setup.context, setup.corpus,
                                        setup.constraint);
}

std::unique_ptr<RecycleDrafter> make_recycle_drafter(const DrafterSetup& setup) {
  return std::make_unique<RecycleDrafter>(setup.mask, setup.constraint);
}

// The draft's best text: its tokens come back as deterministic children, which are accepted as often as the target
// would draw them. Penalties carry over, if not to the token; what names ids of the target does not.
std::unique_ptr<SteppingDrafter> make_retokenizing(const DrafterSetup& setup) {
  DrafterSetup own = setup;
  own.sampling.temperature = 0;
  own.sampling.logit_bias.clear();
  own.mask = drafting_mask(*setup.draft_words);
  own.constraint = nullptr;
  return std::make_unique<RetokenizingDrafter>(make_model_drafter(own), *setup.target_words, *setup.draft_words,
                                               setup.constraint);
}

std::unique_ptr<SteppingDrafter> make_stepping(const DrafterSetup& setup) {
  if (setup.draft_words != nullptr) return make_retokenizing(setup);
  return make_model_drafter(setup);
}

// What a constraint leaves no choice about comes first, whatever else drafts.
std::unique_ptr<Drafter> opened(std::unique_ptr<GrowingDrafter> drafter, const DrafterSetup& setup) {
  if (!setup.constraint) return drafter;
  return std::make_unique<ConstrainedDrafter>(std::move(drafter), setup.constraint);
}

std::unique_ptr<Drafter> make_none(const DrafterSetup&) { return std::make_unique<NoneDrafter>(); }
std::unique_ptr<Drafter> make_model(const DrafterSetup& setup) { return opened(make_stepping(setup), setup); }
std::unique_ptr<Drafter> make_ngram(const DrafterSetup& setup) { return opened(make_ngram_drafter(setup), setup); }
std::unique_ptr<Drafter> make_recycle(const DrafterSetup& setup) { return opened(make_recycle_drafter(setup), setup); }

// Every source that there is.
std::unique_ptr<Drafter> make_hybrid(const DrafterSetup& setup) {
  if (setup.model == nullptr) {
    return opened(std::make_unique<ReuseDrafter>(make_ngram_drafter(setup), make_recycle_drafter(setup)), setup);
  }
  return opened(std::make_unique<HybridDrafter>(make_stepping(setup), make_ngram_drafter(setup)), setup);
}

struct Entry {
  std::string_view kind;
  std::unique_ptr<Drafter> (*make)(const DrafterSetup&);
};
constexpr std::array kDrafters{Entry{"none", make_none}, Entry{"model", make_model}, Entry{"ngram", make_ngram},
                               Entry{"recycle", make_recycle}, Entry{"hybrid", make_hybrid}};

}  // namespace

std::unique_ptr<Drafter> make_drafter(const DrafterSetup& setup) {
  std::string known;
  for (const Entry& entry : kDrafters) {
    if (entry.kind == setup.kind) return entry.make(setup);
    known += known.empty() ? "" : ", ";
    known += entry.kind;
  }
  fail(ErrorKind::config, "draft.kind: expected one of {} (those of this version), got {}", known, setup.kind);
}

}  // namespace tandem
