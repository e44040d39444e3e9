// The configured constraint of a session's answers.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "src/engine/config.h"
#include "src/sample/grammar/token_masks.h"

namespace tandem {

// What every answer of a session is held to; engines that run one after the other share its masks.
class ConfiguredConstraint {
 public:
  // `tokenizer`, `usable`, `end_ids`: of the target. Throws Error naming file, line and column of a grammar, the file
  // and pointer of a schema, or the key; Error(file) for a file that cannot be read.
  ConfiguredConstraint(const Config& config, const Tokenizer& tokenizer, const TokenMask& usable,
                       const std::vector<TokenId>& end_ids);

  // For one engine and its drafter.
  std::shared_ptr<Constraint> make() const;
  // For people, e.g. `json_schema person.json` or `choices yes, no`.
  const std::string& name() const { return name_; }

 private:
  std::string name_;
  std::shared_ptr<TokenMasks> masks_;
};

}  // namespace tandem
