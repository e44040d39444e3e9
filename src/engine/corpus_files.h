// The texts of draft.corpus: found, read, turned into tokens and indexed once, then taken from the user's cache folder.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "draft/corpus.h"
#include "src/text/tokenizer.h"

namespace tandem {

struct CorpusLimits {
  std::uintmax_t file_bytes = 8 << 20;  // a larger file is left out
  std::uintmax_t bytes = 32 << 20;      // of all texts together: at most 256 MiB of index, a quarter of that as a rule
  std::size_t files = 100'000;          // that are looked at
};

struct CorpusUse {
  std::shared_ptr<const Corpus> index;  // never null
  int files = 0;                        // whose text is in it
  std::vector<std::string> skipped;     // files and folders left out, each with its reason, by path
  std::string origin;                   // "indexed at load" or "saved"

  // Of all texts, borders not counted.
  std::size_t tokens() const;
  // One sentence about what was left out; empty when nothing was.
  std::string warning() const;
};

// Reads these files, and the folders' files with all that is below them: in order of their paths, each once, without
// names that begin with a dot and without following links to folders. What cannot be read, holds a zero byte or is too
// large is left out and named. The index is saved under a key of paths, sizes, times and vocabulary, and read instead
// when it is there, whole and of that key. Throws Error(config) beyond the limits for all files, naming file and limit.
CorpusUse load_corpus(const std::vector<std::string>& paths, const Tokenizer& tokenizer,
                      const CorpusLimits& limits = {});

}  // namespace tandem
