// The tokenizer's part of a model file.
#include <algorithm>
#include <array>
#include <fstream>
#include <sstream>

#include "src/base/error.h"
#include "src/engine/model_files.h"
#include "src/text/pretokenizer.h"
#include "src/text/sentencepiece_model.h"

namespace tandem {
namespace {

// Of SentencePiece files that leave the keys out: what Llama's own model has, and llama.cpp (src/llama-vocab.cpp,
// load()) takes for granted whatever these ids spell.
struct DefaultId {
  std::optional<TokenId> Vocabulary::*id;
  TokenId value;
  std::string_view spelling;
};
constexpr std::array<DefaultId, 3> kLlamaIds = {{
    {&Vocabulary::unknown, 0, "<unk>"},
    {&Vocabulary::bos, 1, "<s>"},
    {&Vocabulary::eos, 2, "</s>"},
}};

std::optional<TokenId> read_id(const GgufFile& file, const std::string& name, int size) {
  const std::string key = "tokenizer.ggml." + name + "_token_id";
  if (!file.has(key)) return std::nullopt;
  return static_cast<TokenId>(file.integer(key, 0, size - 1));
}

std::vector<TokenType> read_types(const GgufFile& file, const std::string& key, std::size_t size) {
  const std::vector<std::int64_t> raw = file.integers(key);
  if (raw.size() != size) {
    fail(ErrorKind::model, "{}: {}: expected {} entries, one a token, got {}", file.name(), key, size, raw.size());
  }
  std::vector<TokenType> types;
  types.reserve(size);
  for (std::size_t i = 0; i < size; ++i) {
    if (raw[i] < 1 || raw[i] > 6)
      fail(ErrorKind::model, "{}: {}[{}]: expected 1..6, got {}", file.name(), key, i, raw[i]);
    types.push_back(static_cast<TokenType>(raw[i]));
  }
  return types;
}

// Of a file without types: special ids are control tokens, byte tokens are known by their spelling.
std::vector<TokenType> guessed_types(const Vocabulary& v) {
  std::vector<TokenType> types(v.tokens.size(), TokenType::normal);
  if (v.model == "llama") {
    for (std::size_t id = 0; id < types.size(); ++id) {
      if (byte_of_piece(v.tokens[id]) >= 0) types[id] = TokenType::byte;
    }
  }
  for (const std::optional<TokenId>& id : {v.bos, v.eos, v.eot, v.eom, v.padding}) {
    if (id) types[*id] = TokenType::control;
  }
  if (v.unknown) types[*v.unknown] = TokenType::unknown;
  return types;
}

void read_special_ids(const GgufFile& file, Vocabulary& v) {
  v.bos = read_id(file, "bos", v.size());
  v.eos = read_id(file, "eos", v.size());
  v.eot = read_id(file, "eot", v.size());
  v.eom = read_id(file, "eom", v.size());
  v.unknown = read_id(file, "unknown", v.size());
  v.padding = read_id(file, "padding", v.size());
  if (v.model != "llama") return;
  for (const DefaultId& each : kLlamaIds) {
    if (!(v.*each.id) && v.size() > each.value && v.tokens[each.value] == each.spelling) v.*each.id = each.value;
  }
}

void read_sentencepiece_keys(const GgufFile& file, Vocabulary& v) {
  const std::string rewrites = "tokenizer.ggml.precompiled_charsmap";
  if (file.has(rewrites) && !file.integers(rewrites).empty()) {
    fail(ErrorKind::model, "{}: {}: expected none (text as it stands), got {} bytes, which rewrite text", file.name(),
         rewrites, file.integers(rewrites).size());
  }
  const std::vector<double>& scores = file.reals("tokenizer.ggml.scores");
  v.scores.assign(scores.begin(), scores.end());
  v.add_space_prefix = file.boolean_or("tokenizer.ggml.add_space_prefix", true);
  v.remove_extra_spaces = file.boolean_or("tokenizer.ggml.remove_extra_whitespaces", false);
}

}  // namespace

Vocabulary read_vocabulary(const GgufFile& file) {
  Vocabulary v;
  v.model = file.text("tokenizer.ggml.model");
  v.pre = file.text_or("tokenizer.ggml.pre", "");
  v.tokens = file.texts("tokenizer.ggml.tokens");
  if (v.tokens.empty())
    fail(ErrorKind::model, "{}: tokenizer.ggml.tokens: expected at least 1 entry, got 0", file.name());
  read_special_ids(file, v);
  const std::string types = "tokenizer.ggml.token_type";
  v.types = file.has(types) ? read_types(file, types, v.tokens.size()) : guessed_types(v);
  // Without its merges a byte-level vocabulary would spell every text out byte by byte.
  const std::string merges = "tokenizer.ggml.merges";
  if (v.model == "gpt2" || file.has(merges)) v.merges = file.texts(merges);
  if (v.model == "llama") read_sentencepiece_keys(file, v);
  // As llama.cpp: models of these two kinds were trained with BOS in front.
  const bool kind_adds_bos = v.bos && (v.model == "llama" || is_llama3_pretokenizer(v.pre));
  v.add_bos = file.boolean_or("tokenizer.ggml.add_bos_token", kind_adds_bos);
  return v;
}

std::unique_ptr<Tokenizer> open_tokenizer(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  char magic[4] = {};
  in.read(magic, sizeof magic);
  if (!in || std::string_view(magic, sizeof magic) != "GGUF") {
    in.clear();
    in.seekg(0);
  } else {
    const std::unique_ptr<GgufFile> file = GgufFile::open(path);
    return make_tokenizer(read_vocabulary(*file), file->name());
  }
  if (!in) fail(ErrorKind::file, "{}: cannot be read", path);
  std::ostringstream bytes;
  bytes << in.rdbuf();
  const std::string where = path.substr(path.find_last_of('/') + 1);
  return make_tokenizer(read_sentencepiece_model(bytes.str(), where), where);
}

}  // namespace tandem
