// The file format of the SentencePiece library (a protocol buffer, sentencepiece_model.proto), written from and read
// into our own vocabulary.
#pragma once
#include <string>
#include <string_view>

#include "src/text/vocabulary.h"

namespace tandem {

// A serialised ModelProto in which the library tokenizes plain text by byte-pair encoding, and leaves spaces as they
// are: the caller puts those of add_space_prefix and remove_extra_spaces in order. Ids are those of the vocabulary; one
// past it, when no token is the unknown one, stands for that. Of two tokens of the same text the lower id is used.
// Throws Error(model), naming `where`, for scores or byte tokens that are missing or malformed.
std::string write_sentencepiece_model(const Vocabulary& vocabulary, std::string_view where);

// The vocabulary of a `tokenizer.model` file, whose bytes these are. It has no say in whether a model wants BOS: as
// models of this kind do, it is added when the file has one. Throws Error(file) for a file that is cut or foreign, and
// Error(model) for one that does other than byte-pair encoding or rewrites its text (Unicode normalisation).
Vocabulary read_sentencepiece_model(std::string_view bytes, std::string_view where);

// The value of a byte token's spelling, <0x00> to <0xFF>; -1 for any other text.
int byte_of_piece(std::string_view piece);

// `text` with U+2581 for each space, as pieces have it.
std::string with_space_marks(std::string_view text);

// Pieces as text: the reverse.
std::string with_spaces(std::string_view piece);

// A token of this type and text is matched in plain text, alone or as a part of others.
bool takes_part(const Vocabulary& vocabulary, TokenId id);

}  // namespace tandem
