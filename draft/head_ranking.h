// Which rows of a draft's output head are worth their bytes (draft.head_rows, draft.head_ranking).
#pragma once
#include <span>
#include <string>
#include <vector>

#include "src/base/types.h"
#include "src/sample/token_mask.h"

namespace tandem {

// Token ids of a ranking file, the most useful first: one a line, none twice, blank lines and lines that begin with #
// left out (VocabTrim, arXiv 2506.22694: rank by text that the target wrote). Throws Error(file) naming file, line and
// value for anything but ids below `vocabulary`, and for a file without any.
std::vector<TokenId> read_head_ranking(const std::string& path, int vocabulary);

// The tokens whose rows stay, ascending: the first `rows` of `ranking` that `usable` allows, then by id, and `always`
// besides. Empty when that would be every usable token below `vocabulary`, so that nothing need be trimmed.
std::vector<TokenId> kept_head_tokens(int rows, std::span<const TokenId> ranking, std::span<const TokenId> always,
                                      const TokenMask& usable, int vocabulary);

}  // namespace tandem
