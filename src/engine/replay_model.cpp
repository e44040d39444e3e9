#include "src/engine/replay_model.h"

#include <algorithm>
#include <cassert>

namespace tandem {
namespace {

// A prefix that stands for the first `skipped` tokens of the text, which nobody read.
TokenId stand_in(int skipped) { return -1 - skipped; }
int skipped_by(TokenId token) { return -1 - token; }

bool begins_with(std::span<const TokenId> tokens, std::span<const TokenId> first) {
  return tokens.size() >= first.size() && std::ranges::equal(tokens.first(first.size()), first);
}

}  // namespace

ReplayModel::ReplayModel(Setup setup) : setup_(std::move(setup)), prefixes_(setup_.context) {
  spec_.vocab = setup_.vocabulary;
  spec_.context = setup_.context;
}

// Parents have smaller numbers, so theirs is known.
ReplayPlace ReplayModel::place_of(Prefix prefix) const {
  const ReplayPlace& parent = places_[static_cast<std::size_t>(prefixes_.parent(prefix))];
  const TokenId token = prefixes_.token(prefix);
  if (token < 0) return {skipped_by(token), 0, 0};
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

// A drafter that reads only the end of a long text begins with what is no beginning of it: where that lies. All rows
// but those of drafted tokens at the end are committed ones.
Prefix ReplayModel::root_of(const Batch& batch, const KvCache& cache) {
  if (cache.size() > 0 || begins_with(setup_.text, batch.tokens)) return 0;
  const int rows = static_cast<int>(batch.tokens.size());
  for (int first = std::max(committed_ - rows, 0); first < committed_; ++first) {
    const auto known =
        setup_.text.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(committed_ - first));
    if (begins_with(batch.tokens, known)) return prefixes_.extend(0, stand_in(first));
  }
  return 0;
}

Logits ReplayModel::forward(const Batch& batch, KvCache& cache) {
  setup_.passed(static_cast<int>(batch.tokens.size()));
  const auto vocab = static_cast<std::size_t>(setup_.vocabulary);
  rows_.resize(std::max(rows_.size(), batch.logits_rows.size() * vocab));
  std::size_t answered = 0;
  const auto answer = [&](Prefix prefix) {
    while (std::cmp_less(places_.size(), prefixes_.size())) {
      places_.push_back(place_of(static_cast<Prefix>(places_.size())));
    }
    setup_.write(places_[static_cast<std::size_t>(prefix)], std::span(rows_).subspan(answered * vocab, vocab));
    ++answered;
  };
  prefixes_.run(batch, cache, answer, root_of(batch, cache));
  return {std::span<const float>(rows_).first(answered * vocab), setup_.vocabulary};
}

}  // namespace tandem
