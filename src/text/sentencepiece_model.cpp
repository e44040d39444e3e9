#include "src/text/sentencepiece_model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <unordered_set>
#include <utility>

#include "src/base/error.h"
#include "src/text/proto_wire.h"
#include "src/text/special_tokens.h"
#include "src/text/utf8.h"

namespace tandem {
namespace {

constexpr std::string_view kSpaceMark = "\u2581";

// Field numbers of sentencepiece_model.proto.
namespace field {
constexpr int kPieces = 1, kTrainer = 2, kNormalizer = 3, kDenormalizer = 5;
constexpr int kPiece = 1, kScore = 2, kType = 3;
constexpr int kModelType = 3, kSpaceBehind = 24, kByteFallback = 35;
constexpr int kUnknownId = 40, kBosId = 41, kEosId = 42, kPaddingId = 43;
constexpr int kCharsMap = 2, kDummyPrefix = 3, kRemoveExtra = 4, kEscapeSpaces = 5;
}  // namespace field
constexpr int kBpe = 2;

std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t found = std::min(text.find(from, at), text.size());
    out.append(text, at, found - at);
    if (found < text.size()) out += to;
    at = found + from.size();
  }
  return out;
}

void check_scores(const Vocabulary& vocabulary, std::string_view where) {
  if (vocabulary.scores.size() != vocabulary.tokens.size()) {
    fail(ErrorKind::model, "{}: tokenizer.ggml.scores: expected {} entries, one a token, got {}", where,
         vocabulary.tokens.size(), vocabulary.scores.size());
  }
  for (std::size_t id = 0; id < vocabulary.scores.size(); ++id) {
    if (!std::isfinite(vocabulary.scores[id])) {
      fail(ErrorKind::model, "{}: tokenizer.ggml.scores[{}]: expected a finite number, got {}", where, id,
           vocabulary.scores[id]);
    }
  }
}

// Whether bytes without a piece become byte tokens. The library wants all 256 of them or none.
bool has_bytes(const Vocabulary& vocabulary, std::string_view where) {
  std::array<bool, 256> seen{};
  int count = 0;
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    if (vocabulary.types[id] != TokenType::byte) continue;
    const int byte = byte_of_piece(vocabulary.tokens[id]);
    if (byte < 0) {
      fail(ErrorKind::model, "{}: tokenizer.ggml.tokens[{}]: expected a byte token <0x00> to <0xFF>, got \"{}\"", where,
           id, vocabulary.tokens[id]);
    }
    count += seen[byte] ? 0 : 1;
    seen[byte] = true;
  }
  if (count != 0 && count != 256) {
    fail(ErrorKind::model, "{}: tokenizer.ggml.token_type: expected 256 byte tokens or none, got {}", where, count);
  }
  return count == 256;
}

// The id that the library gives to text it has no piece for: the vocabulary's own, or one past its end.
TokenId unknown_id(const Vocabulary& vocabulary) {
  if (vocabulary.unknown) return *vocabulary.unknown;
  const auto found = std::find(vocabulary.types.begin(), vocabulary.types.end(), TokenType::unknown);
  return static_cast<TokenId>(found - vocabulary.types.begin());
}

class PieceWriter {
 public:
  explicit PieceWriter(std::string& out) : out_(out) {}

  void add(std::string_view text, float score, TokenType type) {
    piece_.clear();
    append_bytes(piece_, field::kPiece, text);
    append_float(piece_, field::kScore, score);
    append_varint(piece_, field::kType, static_cast<std::uint64_t>(type));
    append_bytes(out_, field::kPieces, piece_);
    ++count_;
  }
  // A piece that no text can spell, since a space never reaches the library's pieces.
  void add_hidden(TokenType type) { add(fmt::format(" {}", count_), 0, type); }

 private:
  std::string& out_;
  std::string piece_;
  TokenId count_ = 0;
};

void write_pieces(std::string& out, const Vocabulary& vocabulary) {
  PieceWriter writer(out);
  const TokenId unknown = unknown_id(vocabulary);
  std::unordered_set<std::string> used;
  used.reserve(vocabulary.tokens.size());
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    const TokenType type = vocabulary.types[id];
    std::string text = with_space_marks(vocabulary.tokens[id]);
    if (id == unknown) {
      writer.add_hidden(TokenType::unknown);
    } else if (!takes_part(vocabulary, id) || !used.insert(text).second) {
      writer.add_hidden(TokenType::control);
    } else {
      writer.add(text, vocabulary.scores[id], type);
    }
  }
  if (unknown == vocabulary.size()) writer.add_hidden(TokenType::unknown);
}

// What a message of the file says, by field number; of repeated fields the last, as protocol buffers have it.
struct TrainerSpec {
  std::uint64_t model_type = 1, space_behind = 0;
  std::int64_t unknown = 0, bos = 1, eos = 2, padding = -1;
};

struct NormalizerSpec {
  std::size_t chars_map = 0;  // bytes
  std::uint64_t dummy_prefix = 1, remove_extra = 1, escape_spaces = 1;
};

void read_piece(ProtoReader piece, Vocabulary& vocabulary) {
  std::string text;
  float score = 0;
  std::uint64_t type = 1;
  while (piece.next()) {
    if (piece.field() == field::kPiece) text = piece.bytes();
    if (piece.field() == field::kScore) score = piece.real();
    if (piece.field() == field::kType) type = piece.integer();
  }
  if (type < 1 || type > 6) {
    fail(ErrorKind::file, "{}: piece {}: expected a type 1..6, got {}", piece.where(), vocabulary.size(), type);
  }
  vocabulary.tokens.push_back(std::move(text));
  vocabulary.scores.push_back(score);
  vocabulary.types.push_back(static_cast<TokenType>(type));
}

void read_trainer(ProtoReader message, TrainerSpec& spec) {
  while (message.next()) {
    switch (message.field()) {
      case field::kModelType:
        spec.model_type = message.integer();
        break;
      case field::kSpaceBehind:
        spec.space_behind = message.integer();
        break;
      case field::kUnknownId:
        spec.unknown = static_cast<std::int32_t>(message.integer());
        break;
      case field::kBosId:
        spec.bos = static_cast<std::int32_t>(message.integer());
        break;
      case field::kEosId:
        spec.eos = static_cast<std::int32_t>(message.integer());
        break;
      case field::kPaddingId:
        spec.padding = static_cast<std::int32_t>(message.integer());
        break;
      default:
        break;
    }
  }
}

void read_normalizer(ProtoReader message, NormalizerSpec& spec) {
  while (message.next()) {
    switch (message.field()) {
      case field::kCharsMap:
        spec.chars_map = message.bytes().size();
        break;
      case field::kDummyPrefix:
        spec.dummy_prefix = message.integer();
        break;
      case field::kRemoveExtra:
        spec.remove_extra = message.integer();
        break;
      case field::kEscapeSpaces:
        spec.escape_spaces = message.integer();
        break;
      default:
        break;
    }
  }
}

void refuse_other_kinds(const TrainerSpec& trainer, const NormalizerSpec& normalizer,
                        const NormalizerSpec& denormalizer, std::string_view where) {
  if (trainer.model_type != kBpe) {
    fail(ErrorKind::model, "{}: trainer_spec.model_type: expected {} (BPE), got {}", where, kBpe, trainer.model_type);
  }
  if (normalizer.chars_map > 0 || denormalizer.chars_map > 0) {
    fail(ErrorKind::model,
         "{}: normalizer_spec.precompiled_charsmap: expected none (text as it stands), got {} bytes, which rewrite "
         "text",
         where, normalizer.chars_map + denormalizer.chars_map);
  }
  if (trainer.space_behind != 0 || normalizer.escape_spaces == 0) {
    fail(ErrorKind::model,
         "{}: expected spaces in front of words, as U+2581; got treat_whitespace_as_suffix {}, escape_whitespaces {}",
         where, trainer.space_behind, normalizer.escape_spaces);
  }
}

// As the library has it: an id that the file names, or leaves at its default, is special only if its piece is.
std::optional<TokenId> id_of_type(const Vocabulary& vocabulary, std::int64_t id, TokenType type) {
  if (id < 0 || id >= vocabulary.size() || vocabulary.types[static_cast<std::size_t>(id)] != type) return std::nullopt;
  return static_cast<TokenId>(id);
}

}  // namespace

int byte_of_piece(std::string_view piece) {
  if (piece.size() != 6 || !piece.starts_with("<0x") || piece.back() != '>') return -1;
  const auto digit = [](char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1; };
  const int high = digit(piece[3]), low = digit(piece[4]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

std::string with_space_marks(std::string_view text) { return replaced(text, " ", kSpaceMark); }

std::string with_spaces(std::string_view piece) { return replaced(piece, kSpaceMark, " "); }

bool takes_part(const Vocabulary& vocabulary, TokenId id) {
  const TokenType type = vocabulary.types[id];
  const std::string_view text = vocabulary.tokens[id];
  if (text.empty()) return false;
  if (type == TokenType::byte) return true;
  // Merging goes through unused tokens, which the library then takes apart again; one character it could not.
  if (type == TokenType::unused) return utf8_step(text).length < text.size();
  return (type == TokenType::normal || type == TokenType::user_defined) && !is_end_mark(text);
}

std::string write_sentencepiece_model(const Vocabulary& vocabulary, std::string_view where) {
  check_scores(vocabulary, where);
  const bool byte_fallback = has_bytes(vocabulary, where);
  std::string out, trainer, normalizer;
  write_pieces(out, vocabulary);
  append_varint(trainer, field::kModelType, kBpe);
  append_varint(trainer, field::kByteFallback, byte_fallback);
  append_bytes(out, field::kTrainer, trainer);
  append_varint(normalizer, field::kDummyPrefix, 0);
  append_varint(normalizer, field::kRemoveExtra, 0);
  append_varint(normalizer, field::kEscapeSpaces, 1);
  append_bytes(out, field::kNormalizer, normalizer);
  return out;
}

Vocabulary read_sentencepiece_model(std::string_view bytes, std::string_view where) {
  Vocabulary vocabulary;
  TrainerSpec trainer;
  NormalizerSpec normalizer, denormalizer;
  ProtoReader file(bytes, where);
  while (file.next()) {
    if (file.field() == field::kPieces) read_piece(file.message(), vocabulary);
    if (file.field() == field::kTrainer) read_trainer(file.message(), trainer);
    if (file.field() == field::kNormalizer) read_normalizer(file.message(), normalizer);
    if (file.field() == field::kDenormalizer) read_normalizer(file.message(), denormalizer);
  }
  if (vocabulary.tokens.empty()) fail(ErrorKind::file, "{}: expected pieces of a SentencePiece model, got none", where);
  refuse_other_kinds(trainer, normalizer, denormalizer, where);
  vocabulary.model = "llama";
  vocabulary.add_space_prefix = normalizer.dummy_prefix != 0;
  vocabulary.remove_extra_spaces = normalizer.remove_extra != 0;
  vocabulary.unknown = id_of_type(vocabulary, trainer.unknown, TokenType::unknown);
  vocabulary.bos = id_of_type(vocabulary, trainer.bos, TokenType::control);
  vocabulary.eos = id_of_type(vocabulary, trainer.eos, TokenType::control);
  vocabulary.padding = id_of_type(vocabulary, trainer.padding, TokenType::control);
  vocabulary.add_bos = vocabulary.bos.has_value();
  return vocabulary;
}

}  // namespace tandem
