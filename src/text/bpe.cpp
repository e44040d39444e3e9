#include "src/text/bpe.h"

#include <algorithm>
#include <queue>
#include <utility>

#include "src/base/error.h"
#include "src/text/utf8.h"

namespace tandem {
namespace {

// GPT-2's printable alphabet: bytes that print in Latin-1 stand for themselves, the others for U+0100 onwards.
constexpr int kAlphabetEnd = 0x144;

bool prints(int byte) { return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD); }

std::array<char32_t, 256> make_alphabet() {
  std::array<char32_t, 256> alphabet{};
  char32_t next = 0x100;
  for (int byte = 0; byte < 256; ++byte) alphabet[byte] = prints(byte) ? static_cast<char32_t>(byte) : next++;
  return alphabet;
}

// The byte of each alphabet character, -1 for others.
std::array<int, kAlphabetEnd> invert(const std::array<char32_t, 256>& alphabet) {
  std::array<int, kAlphabetEnd> bytes{};
  bytes.fill(-1);
  for (int byte = 0; byte < 256; ++byte) bytes[alphabet[byte]] = byte;
  return bytes;
}

std::uint64_t pair_key(TokenId left, TokenId right) {
  return static_cast<std::uint64_t>(left) << 32 | static_cast<std::uint32_t>(right);
}

}  // namespace

// Symbols of one piece as a doubly linked list over `symbols`, and the merges that may be done next.
struct BpeTokenizer::Scratch {
  struct Symbol {
    TokenId id;  // -1 once merged into the symbol to its left
    int previous, next;
  };
  struct Candidate {
    std::int32_t rank;
    int left, right;
    TokenId left_id, right_id, result;
    bool operator<(const Candidate& other) const {  // for a max-heap: the best is the lowest rank, then leftmost
      return rank != other.rank ? rank > other.rank : left > other.left;
    }
  };
  std::vector<std::string_view> pieces;
  std::vector<Symbol> symbols;
  std::priority_queue<Candidate> queue;
  std::vector<Boundary>* boundaries = nullptr;  // takes the end of each piece, if anyone wants to know
};

struct BpeTokenizer::Boundary {
  const char* end;
  std::size_t ids;  // up to here
  bool blank;       // the piece before it is white space, which may join what follows
};

BpeTokenizer::BpeTokenizer(Vocabulary vocabulary, std::string_view where)
    : vocabulary_(std::move(vocabulary)),
      pretokenizer_(vocabulary_.pre, where),
      user_defined_(vocabulary_, Spelled::user_defined),
      control_(vocabulary_, Spelled::control),
      all_specials_(vocabulary_, Spelled::all) {
  read_bytes();
  read_merges(where);
  if (!pretokenizer_.whole_pieces_first()) return;
  for (TokenId id = 0; id < vocabulary_.size(); ++id) {
    if (is_text(vocabulary_.types[id])) whole_pieces_.emplace(bytes(id, false), id);
  }
}

void BpeTokenizer::read_bytes() {
  const std::array<int, kAlphabetEnd> byte_of = invert(make_alphabet());
  offsets_.reserve(vocabulary_.tokens.size() + 1);
  for (TokenId id = 0; id < vocabulary_.size(); ++id) {
    offsets_.push_back(text_.size());
    std::string_view token = vocabulary_.tokens[id];
    const TokenType type = vocabulary_.types[id];
    if (type != TokenType::normal && type != TokenType::byte) {
      text_ += token;  // spelled as it is, outside the alphabet
      continue;
    }
    while (!token.empty()) {
      const Utf8Step step = utf8_step(token);
      const int byte = step.valid && step.character < kAlphabetEnd ? byte_of[step.character] : -1;
      if (byte >= 0) {
        text_.push_back(static_cast<char>(byte));
      } else {
        text_ += token.substr(0, step.length);
      }
      token.remove_prefix(step.length);
    }
  }
  offsets_.push_back(text_.size());
}

void BpeTokenizer::read_merges(std::string_view where) {
  std::unordered_map<std::string_view, TokenId> ids;
  ids.reserve(vocabulary_.tokens.size());
  for (TokenId id = 0; id < vocabulary_.size(); ++id) {
    if (is_text(vocabulary_.types[id])) ids.emplace(vocabulary_.tokens[id], id);
  }
  const std::array<char32_t, 256> alphabet = make_alphabet();
  for (int byte = 0; byte < 256; ++byte) {
    std::string token;
    append_utf8(token, alphabet[byte]);
    if (const auto found = ids.find(token); found != ids.end()) byte_ids_[byte] = {found->second};
  }
  std::vector<TokenId> replacement;
  for (const int byte : {0xEF, 0xBF, 0xBD}) {
    replacement.insert(replacement.end(), byte_ids_[byte].begin(), byte_ids_[byte].end());
  }
  for (std::vector<TokenId>& byte_ids : byte_ids_) {
    if (byte_ids.empty() && replacement.size() == 3) byte_ids = replacement;
  }

  merges_.reserve(vocabulary_.merges.size());
  std::string joined;
  for (std::size_t rank = 0; rank < vocabulary_.merges.size(); ++rank) {
    const std::string_view merge = vocabulary_.merges[rank];
    const std::size_t space = merge.find(' ');
    if (space == std::string_view::npos || space == 0 || space + 1 == merge.size()) {
      fail(ErrorKind::model, "{}: tokenizer.ggml.merges: entry {}: expected two parts with a space between, got \"{}\"",
           where, rank, merge);
    }
    joined.assign(merge, 0, space).append(merge, space + 1);
    const auto left = ids.find(merge.substr(0, space)), right = ids.find(merge.substr(space + 1));
    const auto result = ids.find(joined);
    // A merge of strings that are no tokens can never take part in a text.
    if (left == ids.end() || right == ids.end() || result == ids.end()) continue;
    merges_.emplace(pair_key(left->second, right->second), Merge{static_cast<std::int32_t>(rank), result->second});
  }
}

std::string_view BpeTokenizer::bytes(TokenId id, bool show_control) const {
  if (id < 0 || id >= vocabulary_.size()) return {};
  if (!show_control && !is_text(vocabulary_.types[id])) return {};
  return std::string_view(text_).substr(offsets_[id], offsets_[id + 1] - offsets_[id]);
}

std::vector<TokenId> BpeTokenizer::encode(std::string_view bytes, Specials specials, Place) const {
  std::vector<TokenId> ids;
  Scratch scratch;
  encode_all(bytes, specials == Specials::parse ? all_specials_ : user_defined_, scratch, ids);
  return ids;
}

// No pattern looks back, so splitting goes on from the end of any piece as from the start of a text. What more text can
// change are the last piece, a contraction of up to three pieces ('ll), white space in front of either, and what may
// become part of a token that is recognised by its spelling.
OpenEncoding BpeTokenizer::encode_open(std::string_view bytes, Place) const {
  constexpr std::size_t kOpenPieces = 3;
  OpenEncoding out;
  std::vector<Boundary> boundaries;
  Scratch scratch;
  scratch.boundaries = &boundaries;
  encode_all(bytes, user_defined_, scratch, out.ids);
  const std::size_t spelling = std::min(bytes.size(), std::max<std::size_t>(user_defined_.longest(), 1) - 1);
  const char* last = bytes.data() + (bytes.size() - spelling);
  std::size_t settled = boundaries.size() - std::min(boundaries.size(), kOpenPieces);
  while (settled > 0 && (boundaries[settled - 1].blank || boundaries[settled - 1].end > last)) --settled;
  if (settled == 0) return out;
  out.settled_ids = boundaries[settled - 1].ids;
  out.settled_bytes = static_cast<std::size_t>(boundaries[settled - 1].end - bytes.data());
  return out;
}

void BpeTokenizer::encode_all(std::string_view bytes, const SpecialTokens& spelled, Scratch& scratch,
                              std::vector<TokenId>& ids) const {
  std::size_t at = 0;
  while (at < bytes.size()) {
    const SpecialTokens::Match match = spelled.find(bytes, at);
    encode_text(bytes.substr(at, match.begin - at), scratch, ids);
    at = match.begin + match.length;
    if (match.length == 0) continue;
    ids.push_back(match.id);
    if (scratch.boundaries != nullptr) scratch.boundaries->push_back({bytes.data() + at, ids.size(), false});
  }
}

void BpeTokenizer::encode_text(std::string_view text, Scratch& scratch, std::vector<TokenId>& ids) const {
  scratch.pieces.clear();
  while (!text.empty()) {
    const std::size_t valid = valid_utf8_prefix(text);
    if (valid > 0) pretokenizer_.split(text.substr(0, valid), scratch.pieces);
    text.remove_prefix(valid);
    std::size_t invalid = 0;  // neighbouring invalid parts stay together, so that a cut character may be one token
    while (invalid < text.size()) {
      const Utf8Step step = utf8_step(text.substr(invalid));
      if (step.valid) break;
      invalid += step.length;
    }
    if (invalid > 0) scratch.pieces.push_back(text.substr(0, invalid));
    text.remove_prefix(invalid);
  }
  for (const std::string_view piece : scratch.pieces) {
    encode_piece(piece, scratch, ids);
    if (scratch.boundaries == nullptr) continue;
    scratch.boundaries->push_back(
        {piece.data() + piece.size(), ids.size(), is_white_space(utf8_step(piece).character)});
  }
}

void BpeTokenizer::encode_piece(std::string_view piece, Scratch& scratch, std::vector<TokenId>& ids) const {
  if (const auto whole = whole_pieces_.find(piece); whole != whole_pieces_.end()) {
    ids.push_back(whole->second);
    return;
  }
  scratch.symbols.clear();
  for (const char byte : piece) {
    for (const TokenId id : byte_ids_[static_cast<unsigned char>(byte)]) {
      const int at = static_cast<int>(scratch.symbols.size());
      scratch.symbols.push_back({id, at - 1, at + 1});
    }
  }
  if (scratch.symbols.empty()) return;
  scratch.symbols.back().next = -1;
  merge_all(scratch);
  for (int at = 0; at >= 0; at = scratch.symbols[at].next) ids.push_back(scratch.symbols[at].id);
}

const BpeTokenizer::Merge* BpeTokenizer::merge_of(TokenId left, TokenId right) const {
  const auto found = merges_.find(pair_key(left, right));
  return found == merges_.end() ? nullptr : &found->second;
}

// Each merge removes a symbol and offers at most two new candidates, so n symbols cost O(n log n).
void BpeTokenizer::merge_all(Scratch& scratch) const {
  std::vector<Scratch::Symbol>& symbols = scratch.symbols;
  const auto offer = [&](int left, int right) {
    if (left < 0 || right < 0) return;
    const TokenId left_id = symbols[left].id, right_id = symbols[right].id;
    if (const Merge* merge = merge_of(left_id, right_id)) {
      scratch.queue.push({merge->rank, left, right, left_id, right_id, merge->result});
    }
  };
  for (int right = 1; right < static_cast<int>(symbols.size()); ++right) offer(right - 1, right);
  while (!scratch.queue.empty()) {
    const Scratch::Candidate best = scratch.queue.top();
    scratch.queue.pop();
    Scratch::Symbol& left = symbols[best.left];
    Scratch::Symbol& right = symbols[best.right];
    // A symbol only grows or is absorbed, so equal ids mean that both sides are still what was offered.
    if (left.id != best.left_id || right.id != best.right_id) continue;
    left.id = best.result;
    right.id = -1;
    left.next = right.next;
    if (left.next >= 0) symbols[left.next].previous = best.left;
    offer(left.previous, best.left);
    offer(best.left, left.next);
  }
}

}  // namespace tandem
