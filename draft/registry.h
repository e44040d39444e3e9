// The drafters of this build, by name.
#pragma once
#include <memory>
#include <string>

#include "draft/corpus.h"
#include "draft/drafter.h"
#include "src/model/language_model.h"
#include "src/sample/sampler.h"
#include "src/text/tokenizer.h"

namespace tandem {

// What the drafters may need; each takes its part.
struct DrafterSetup {
  std::string kind;          // none, model, ngram, recycle, hybrid
  SamplingOptions sampling;  // as the target's
  Noise noise;
  DraftDraw draw = DraftDraw::independent;  // what the rule asks for
  // model
  LanguageModel* model = nullptr;  // outlives the drafter
  int context = 0;  // slots of the draft's cache; ngram: text to take memory for at once, 0 = as it grows
  KvType kv_type = KvType::f16;
  TokenMask mask;                            // ids that both vocabularies may produce; recycle: those of the target
  std::shared_ptr<Constraint> constraint{};  // of the answer; null: none
  // retokenize: the tokenizers of target and draft, which outlive the drafter; null: the models share a vocabulary
  const Tokenizer* target_words = nullptr;
  const Tokenizer* draft_words = nullptr;
  // ngram
  int min_match = 2, max_match = 64;
  std::shared_ptr<const Corpus> corpus{};  // null: none
};

// Throws Error(config) for a kind that does not exist or has not landed, naming those that have.
std::unique_ptr<Drafter> make_drafter(const DrafterSetup& setup);

}  // namespace tandem
