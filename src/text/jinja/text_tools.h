// String operations that filters and methods share. All keep the marks of what they cut and join.
#pragma once
#include <optional>

#include "src/text/jinja/runtime.h"

namespace tandem::jinja {

enum class Side { left, right, both };

// str.strip and its kin; `characters` empty: whitespace.
MarkedText stripped(const MarkedText& text, Side side, const std::optional<std::string>& characters = {});
// Up to `count` replacements, all when negative. Throws Problem where the text becomes too long.
MarkedText replaced(Runtime& runtime, const MarkedText& text, const MarkedText& from, const MarkedText& to,
                    std::int64_t count);
// str.split; no separator: runs of whitespace. At most `count` cuts unless negative.
std::vector<MarkedText> split(Runtime& runtime, const MarkedText& text, const std::optional<std::string>& separator,
                              std::int64_t count);
std::vector<MarkedText> split_from_right(Runtime& runtime, const MarkedText& text,
                                         const std::optional<std::string>& separator, std::int64_t count);
std::vector<MarkedText> lines(Runtime& runtime, const MarkedText& text, bool keep_ends = false);
Value texts(Runtime& runtime, std::vector<MarkedText> parts, SequenceKind kind = SequenceKind::list);
// With HTML's entities for & < > ' and ".
MarkedText escaped(const MarkedText& text);
Value markup(Runtime& runtime, MarkedText text);

}  // namespace tandem::jinja
