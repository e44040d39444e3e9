// Writes the seeds of the SentencePiece fuzzer into a folder: make_sentencepiece_corpus tests/fuzz/corpus/sentencepiece
#include <cstdio>
#include <fstream>
#include <string>
#include <string_view>

#include "src/text/sentencepiece_model.h"
#include "tests/text/tiny_pieces.h"

namespace {

void write(const std::string& path, const tandem::Vocabulary& vocabulary, std::string_view text) {
  std::ofstream out(path, std::ios::binary);
  out << tandem::write_sentencepiece_model(vocabulary, path) << text << static_cast<char>(text.size());
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) {
    std::fputs("usage: make_sentencepiece_corpus FOLDER\n", stderr);
    return 2;
  }
  const std::string folder = arguments[1];
  tandem::Vocabulary words = tandem::tiny_pieces({"ab", " a", "a", "b", "\u00e9", " "}, false);
  add_piece(words, "<w>", tandem::TokenType::user_defined);
  add_piece(words, "ba", tandem::TokenType::unused, 1);
  write(folder + "/words", words, "ab a<w>\u00e9 ba");
  write(folder + "/bytes", tandem::tiny_pieces({" the", "the", "th", "t", "h", "e", " "}), "the the<s>\xE6\xAD\n");
  return 0;
}
