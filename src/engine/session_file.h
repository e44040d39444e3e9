// The cache of a text on disk, for another run over the same model to go on from.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "src/engine/session.h"

namespace tandem {

// What must be the same for one run's cache to hold the very bits of another's: names with their values.
using CacheIdentity = std::vector<std::pair<std::string, std::string>>;
CacheIdentity cache_identity(const Session& session);

// Writes the tokens in the target's cache, and the cache, so that `path` is replaced whole or not at all; only the user
// can read the file. Returns how many tokens it holds. Throws Error(file).
int write_session_file(const std::string& path, const Session& session);

// Takes the state of such a file into the session's engine, whose next prompt reuses what it begins with. Returns how
// many tokens it holds; 0 when there is no file at `path`. Throws Error(file), and leaves the engine alone, for a file
// that is of something else, cut or changed, that another model, tokenizer, template, cache type, backend or version
// wrote (naming what differs and both values), or that holds more tokens than the context has room for.
int read_session_file(const std::string& path, Session& session);

}  // namespace tandem
