#include "src/text/vocabulary_pair.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <unordered_set>

namespace tandem {
namespace {

// Of ids that neither may generate: padding has other names, or is missing in one file.
bool listed_alike(const Vocabulary& a, const Vocabulary& b, TokenId id) {
  return id < a.size() && id < b.size() && a.tokens[id] == b.tokens[id];
}

// Byte-level models spell all they have by bytes, whatever the type.
bool is_byte(const Vocabulary& vocabulary, TokenId id) {
  return vocabulary.model == "llama" && vocabulary.types[id] == TokenType::byte;
}

}  // namespace

bool same_token(const Vocabulary& target, const Vocabulary& draft, TokenId id) {
  if (!target.usable(id) && !draft.usable(id)) return true;
  return target.usable(id) == draft.usable(id) && target.tokens[id] == draft.tokens[id] &&
         is_byte(target, id) == is_byte(draft, id);
}

std::string described(const Vocabulary& vocabulary, TokenId id) {
  if (id >= vocabulary.size()) return "nothing";
  const char* kind = !vocabulary.usable(id) ? " (unused)" : is_byte(vocabulary, id) ? " (byte)" : "";
  return fmt::format("\"{}\"{}", vocabulary.tokens[id], kind);
}

VocabularyComparison compare_vocabularies(const Vocabulary& target, const Vocabulary& draft, std::size_t listed) {
  VocabularyComparison found{.target_size = target.size(), .draft_size = draft.size(), .first = {}};
  for (TokenId id = 0; id < std::max(target.size(), draft.size()); ++id) {
    if (!same_token(target, draft, id)) {
      ++found.differing;
      if (found.first.size() < listed) found.first.push_back({id, described(target, id), described(draft, id)});
    } else if (!listed_alike(target, draft, id)) {
      ++found.padding;
    }
  }
  std::unordered_set<std::string_view> pieces;
  for (TokenId id = 0; id < draft.size(); ++id) {
    if (draft.usable(id)) pieces.insert(draft.tokens[id]);
  }
  for (TokenId id = 0; id < target.size(); ++id) {
    found.shared_pieces += target.usable(id) && pieces.contains(target.tokens[id]);
  }
  return found;
}

}  // namespace tandem
