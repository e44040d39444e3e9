#include "src/cli/draft_colours.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "src/cli/terminal.h"

namespace tandem {
namespace {

// One a source, in the order of kDraftSourceNames; the target's own text has none.
constexpr std::array<std::string_view, kDraftSources> kColours{"",         "\033[32m", "\033[36m", "\033[35m",
                                                               "\033[33m", "\033[34m", "\033[2m"};
constexpr std::string_view kPlain = "\033[0m";

constexpr bool continues_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

std::string coloured(std::string_view text, DraftSource source) {
  const std::string_view colour = kColours[static_cast<std::size_t>(source)];
  return colour.empty() ? std::string(text) : fmt::format("{}{}{}", colour, text, kPlain);
}

}  // namespace

std::string DraftColours::paint(std::string_view text, std::span<const TextOrigin> origins) {
  std::string painted;
  while (!text.empty()) {
    while (next_ < origins.size() && origins[next_].end <= painted_) ++next_;
    const bool known = next_ < origins.size();
    std::size_t length = known ? std::min(text.size(), origins[next_].end - painted_) : text.size();
    while (length < text.size() && continues_character(text[length])) ++length;
    const std::string_view part = text.substr(0, length);
    painted += on_ && known ? coloured(part, origins[next_].source) : std::string(part);
    painted_ += length;
    text.remove_prefix(length);
  }
  return painted;
}

std::string DraftColours::legend() {
  std::string text;
  for (int i = 1; i < kDraftSources; ++i) {
    text += (text.empty() ? "" : ", ") +
            coloured(kDraftSourceNames[static_cast<std::size_t>(i)], static_cast<DraftSource>(i));
  }
  return text;
}

bool wants_colour(std::string_view when, int descriptor) {
  if (when != "auto") return when == "always";
  const char* no_colour = std::getenv("NO_COLOR");
  return is_terminal(descriptor) && (no_colour == nullptr || *no_colour == 0);
}

}  // namespace tandem
