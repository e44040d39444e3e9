#include "src/engine/replay_model.h"

#include <algorithm>
#include <cassert>

namespace tandem {

ReplayModel::ReplayModel(Setup setup) : setup_(std::move(setup)), prefixes_(setup_.context) {
  spec_.vocab = setup_.vocabulary;
  spec_.context = setup_.context;
}

// Parents have smaller numbers, so theirs is known.
ReplayPlace ReplayModel::place_of(Prefix prefix) const {
  const ReplayPlace& parent = places_[static_cast<std::size_t>(prefixes_.parent(prefix))];
  const TokenId token = prefixes_.token(prefix);
  ReplayPlace place{parent.length + 1, parent.anchor, -1};
  const auto length = static_cast<std::size_t>(parent.length);
  if (parent.depth == 0 && length < setup_.text.size() && setup_.text[length] == token) {
    place.depth = 0;
    return place;
  }
  if (parent.depth < 0) return place;
  if (parent.depth == 0) place.anchor = parent.length - setup_.prompt;
  if (place.anchor < 0 || place.anchor >= static_cast<int>(setup_.branches.size())) return place;
  const std::vector<TokenId>& branch = setup_.branches[static_cast<std::size_t>(place.anchor)].tokens;
  const auto depth = static_cast<std::size_t>(parent.depth);
  if (depth < branch.size() && branch[depth] == token) place.depth = parent.depth + 1;
  return place;
}

Logits ReplayModel::forward(const Batch& batch, KvCache& cache) {
  setup_.passed(static_cast<int>(batch.tokens.size()));
  const auto vocab = static_cast<std::size_t>(setup_.vocabulary);
  rows_.resize(std::max(rows_.size(), batch.logits_rows.size() * vocab));
  std::size_t answered = 0;
  prefixes_.run(batch, cache, [&](Prefix prefix) {
    while (std::cmp_less(places_.size(), prefixes_.size())) {
      places_.push_back(place_of(static_cast<Prefix>(places_.size())));
    }
    setup_.write(places_[static_cast<std::size_t>(prefix)], std::span(rows_).subspan(answered * vocab, vocab));
    ++answered;
  });
  return {std::span<const float>(rows_).first(answered * vocab), setup_.vocabulary};
}

}  // namespace tandem
