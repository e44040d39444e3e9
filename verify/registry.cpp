#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/error.h"
#include "src/base/options.h"
#include "verify/block.h"
#include "verify/coupled.h"
#include "verify/rejection.h"
#include "verify/typical.h"
#include "verify/verifier.h"

namespace tandem {
namespace {

struct Rule {
  std::string_view name;
  std::unique_ptr<Verifier> (*make)();
};

constexpr std::array<Rule, 4> kRules{{{"rejection", make_rejection_verifier},
                                      {"block", make_block_verifier},
                                      {"coupled", make_coupled_verifier},
                                      {"typical", make_typical_verifier}}};

}  // namespace

std::unique_ptr<Verifier> make_verifier(std::string_view rule) {
  const auto found = std::find_if(kRules.begin(), kRules.end(), [&](const Rule& known) { return known.name == rule; });
  if (found != kRules.end()) return found->make();
  std::vector<std::string> names(kRules.size());
  std::transform(kRules.begin(), kRules.end(), names.begin(), [](const Rule& known) { return known.name; });
  const auto nearest = nearest_name(rule, names);
  fail(ErrorKind::config, "verify.rule: unknown rule {}{}; available: {}", rule,
       nearest ? " (did you mean " + *nearest + "?)" : "", fmt::join(names, ", "));
}

}  // namespace tandem
