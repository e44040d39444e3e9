#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/error.h"
#include "src/base/options.h"
#include "verify/rejection.h"
#include "verify/verifier.h"

namespace tandem {
namespace {

struct Rule {
  std::string_view name;
  std::unique_ptr<Verifier> (*make)();  // null: documented, not available yet
};

constexpr std::array<Rule, 4> kRules{
    {{"rejection", make_rejection_verifier}, {"block", nullptr}, {"coupled", nullptr}, {"typical", nullptr}}};

std::string available() {
  std::string names;
  for (const Rule& rule : kRules) {
    if (rule.make != nullptr) names += (names.empty() ? "" : ", ") + std::string(rule.name);
  }
  return names;
}

}  // namespace

std::unique_ptr<Verifier> make_verifier(std::string_view rule) {
  const auto found = std::find_if(kRules.begin(), kRules.end(), [&](const Rule& known) { return known.name == rule; });
  if (found == kRules.end()) {
    std::vector<std::string> names(kRules.size());
    std::transform(kRules.begin(), kRules.end(), names.begin(), [](const Rule& known) { return known.name; });
    const auto nearest = nearest_name(rule, names);
    fail(ErrorKind::config, "verify.rule: unknown rule {}{}; available: {}", rule,
         nearest ? " (did you mean " + *nearest + "?)" : "", available());
  }
  if (found->make == nullptr) {
    fail(ErrorKind::config, "verify.rule: {} is not available yet; available: {}", rule, available());
  }
  return found->make();
}

}  // namespace tandem
