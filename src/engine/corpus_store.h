// Indexes of draft.corpus in the user's cache folder: one file each, so many of the latest.
#pragma once
#include <optional>
#include <string>

#include "src/engine/corpus_files.h"

namespace tandem {

inline constexpr int kMostSavedCorpora = 8;  // what was used longest ago is forgotten

// What write_corpus() saved under this key (64 hexadecimal digits). Nothing when there is none, or the file is cut,
// changed, of another key or version, or holds ids beyond the vocabulary.
std::optional<CorpusUse> read_corpus(const std::string& key, int vocabulary);

// A folder that cannot be written only costs time at the next run.
void write_corpus(const std::string& key, const CorpusUse& use);

}  // namespace tandem
