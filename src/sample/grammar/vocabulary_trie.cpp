#include "src/sample/grammar/vocabulary_trie.h"

#include <algorithm>

#include "src/text/utf8.h"

namespace tandem {
namespace {

constexpr int kFewTokens = 4;               // below a node, of which it is not worth knowing the bytes
constexpr std::size_t kLongestText = 4096;  // bytes; no vocabulary has longer tokens

// Bytes of whole, well-formed characters that a text begins with, and whether nothing else is in it but the beginning
// of one more.
struct Characters {
  explicit Characters(std::string_view text) {
    for (;;) {
      const Utf8Step step = utf8_step(text.substr(ends.back()));
      well_formed = step.length == 0 || (step.incomplete && ends.back() + step.length == text.size());
      if (!step.valid) return;
      ends.push_back(ends.back() + step.length);
    }
  }
  bool ends_at(std::size_t byte) const { return std::ranges::binary_search(ends, byte); }

  std::vector<std::size_t> ends{0};
  bool well_formed = false;
};

std::size_t shared_bytes(std::string_view a, std::string_view b) {
  return static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

}  // namespace

VocabularyTrie::VocabularyTrie(const Tokenizer& tokenizer, const TokenMask& usable) {
  const Vocabulary& vocabulary = tokenizer.vocabulary();
  begins_.push_back(0);
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    const bool is_used = usable.allows(id) && is_text(vocabulary.types[static_cast<std::size_t>(id)]);
    const std::string_view text = is_used ? tokenizer.bytes(id) : std::string_view();
    if (!text.empty() && text.size() <= kLongestText) {
      texts_ += text;
      ordered_.push_back(id);
    }
    begins_.push_back(static_cast<std::uint32_t>(texts_.size()));
  }
  std::ranges::stable_sort(ordered_, {}, [this](TokenId id) { return text(id); });
  add_nodes();
}

void VocabularyTrie::add_nodes() {
  std::vector<std::int32_t> path;  // nodes of the last token's bytes
  std::string_view last;
  const auto close = [&](std::size_t depth, std::size_t token) {
    for (; path.size() > depth; path.pop_back()) {
      Node& node = nodes_[static_cast<std::size_t>(path.back())];
      node.end = static_cast<std::int32_t>(nodes_.size());
      node.tokens_end = static_cast<std::int32_t>(token);
      if (path.size() > 1) {
        Node& parent = nodes_[static_cast<std::size_t>(path[path.size() - 2])];
        parent.height = std::max<std::uint16_t>(parent.height, static_cast<std::uint16_t>(node.height + 1));
      }
    }
  };
  for (std::size_t i = 0; i < ordered_.size(); ++i) {
    const std::string_view bytes = text(ordered_[i]);
    longest_ = std::max(longest_, static_cast<int>(bytes.size()));
    close(shared_bytes(last, bytes), i);
    const Characters characters(bytes);
    while (path.size() < bytes.size()) {
      path.push_back(static_cast<std::int32_t>(nodes_.size()));
      nodes_.push_back({.end = 0,
                        .tokens_begin = static_cast<std::int32_t>(i),
                        .tokens_end = 0,
                        .own = 0,
                        .depth = static_cast<std::uint16_t>(path.size()),
                        .height = 0,
                        .byte = static_cast<std::uint8_t>(bytes[path.size() - 1]),
                        .ends_character = characters.ends_at(path.size()),
                        .begins_character = characters.ends_at(path.size() - 1) && !characters.ends_at(path.size())});
    }
    ++nodes_[static_cast<std::size_t>(path.back())].own;
    last = bytes;
  }
  close(0, ordered_.size());
  sum_up();
}

// What is known of everything below a node.
void VocabularyTrie::sum_up() {
  std::vector<int> malformed{0};  // tokens before each
  for (const TokenId id : ordered_) malformed.push_back(malformed.back() + (Characters(text(id)).well_formed ? 0 : 1));
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    Node& node = nodes_[i];
    const auto begin = static_cast<std::size_t>(node.tokens_begin), end = static_cast<std::size_t>(node.tokens_end);
    const bool well_formed = malformed[begin] == malformed[end];
    node.ends_character = node.ends_character && well_formed;
    node.begins_character = node.begins_character && well_formed;
    if (node.tokens_end - node.tokens_begin < kFewTokens) continue;
    std::bitset<256> bytes;
    for (auto j = i + 1; j < static_cast<std::size_t>(node.end); ++j) bytes.set(nodes_[j].byte);
    node.below = static_cast<std::int32_t>(below_.size());
    below_.push_back(bytes);
  }
}

TokenId VocabularyTrie::longest_prefix(std::string_view text) const {
  TokenId best = -1;
  std::size_t depth = 0;
  for (std::size_t i = 0, end = nodes_.size(); i < end && depth < text.size();) {
    const Node& node = nodes_[i];
    if (node.byte != static_cast<std::uint8_t>(text[depth])) {
      i = static_cast<std::size_t>(node.end);
      continue;
    }
    if (node.own > 0) best = ordered_[static_cast<std::size_t>(node.tokens_begin)];
    end = static_cast<std::size_t>(node.end);
    ++depth;
    ++i;
  }
  return best;
}

std::size_t VocabularyTrie::bytes() const {
  return texts_.size() + begins_.size() * sizeof(begins_[0]) + ordered_.size() * sizeof(TokenId) +
         nodes_.size() * sizeof(Node) + below_.size() * sizeof(below_[0]);
}

}  // namespace tandem
