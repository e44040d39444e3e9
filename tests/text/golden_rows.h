// Compares the text layer with tests/golden, whose values come from an independent engine.
#pragma once
#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "src/engine/model_files.h"
#include "src/text/chat_template.h"
#include "src/text/tokenizer.h"
#include "tests/model_folder.h"

namespace tandem {

struct GoldenModel {
  GoldenModel(std::string name, std::string_view file)
      : golden_name(std::move(name)),
        gguf(GgufFile::open(model_path(file))),
        tokenizer(make_tokenizer(read_vocabulary(*gguf), file)) {}

  std::string golden_name;  // the `model` of its rows
  std::unique_ptr<GgufFile> gguf;
  std::unique_ptr<Tokenizer> tokenizer;
};

// The rows of one model, each a JSON object.
inline std::vector<nlohmann::json> golden_rows(const std::string& file, const std::string& model) {
  std::ifstream in(std::string(TANDEM_SOURCE_DIR) + "/tests/golden/" + file);
  std::vector<nlohmann::json> rows;
  for (std::string line; std::getline(in, line);) {
    nlohmann::json row = nlohmann::json::parse(line);
    if (row["model"] == model) rows.push_back(std::move(row));
  }
  return rows;
}

inline std::string from_base64(std::string_view text) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : text.substr(0, text.find('='))) {
    bits = bits << 6 | static_cast<std::uint32_t>(kDigits.find(c));
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes.push_back(static_cast<char>(bits >> count));
  }
  return bytes;
}

// The bytes of a row, which are not UTF-8 in some rows of SentencePiece models.
inline std::string text_of(const nlohmann::json& row) {
  return row.contains("text") ? row["text"].get<std::string>() : from_base64(row["bytes_base64"].get<std::string>());
}

inline void expect_golden_tokens(const GoldenModel& model) {
  const auto rows = golden_rows("tokenize.jsonl", model.golden_name);
  for (const auto& row : rows) {
    const std::string text = text_of(row);
    const Specials specials = row["special"] ? Specials::parse : Specials::literal;
    const std::vector<TokenId> ids = row.value("bos", false) ? model.tokenizer->encode_prompt(text, specials)
                                                             : model.tokenizer->encode(text, specials);
    EXPECT_EQ(ids, row["ids"].get<std::vector<TokenId>>()) << row.dump();
    // `</s>` is an ordinary token of the Qwen files, so it shows without being asked for.
    const bool bos_added = row.value("bos", false) && model.tokenizer->vocabulary().add_bos;
    EXPECT_EQ(model.tokenizer->decode(ids, true), bos_added ? "<bos>" + text : text);
  }
  EXPECT_GE(rows.size(), 70u);
  std::printf("compared %zu rows of %s\n", rows.size(), model.golden_name.c_str());
}

// Cut anywhere, a text goes on from what is settled as if it had come at once.
inline void expect_settled_tokens_stay(const GoldenModel& model) {
  int cuts = 0;
  for (const auto& row : golden_rows("tokenize.jsonl", model.golden_name)) {
    const std::string text = text_of(row);
    const std::vector<TokenId> whole = model.tokenizer->encode(text, Specials::literal);
    for (std::size_t cut = 0; cut <= text.size(); ++cut, ++cuts) {
      const OpenEncoding open = model.tokenizer->encode_open(std::string_view(text).substr(0, cut), Place::begins);
      std::vector<TokenId> ids(open.ids.begin(), open.ids.begin() + static_cast<std::ptrdiff_t>(open.settled_ids));
      const Place place = open.settled_bytes > 0 ? Place::goes_on : Place::begins;
      for (const TokenId id : model.tokenizer->encode(text.substr(open.settled_bytes), Specials::literal, place)) {
        ids.push_back(id);
      }
      ASSERT_EQ(ids, whole) << "cut at " << cut << ": " << row.dump();
    }
  }
  EXPECT_GT(cuts, 1000);
}

inline void expect_golden_chats(const GoldenModel& model) {
  const auto chat = make_chat_template(model.gguf->text("tokenizer.chat_template"), model.golden_name);
  const auto rows = golden_rows("chat.jsonl", model.golden_name);
  for (const auto& row : rows) {
    std::vector<ChatMessage> messages;
    for (const auto& message : row["messages"]) messages.push_back({message["role"], message["content"]});
    const auto segments = chat->render(messages);
    EXPECT_EQ(text_of(segments), row["text"].get<std::string>());
    EXPECT_EQ(encode_chat(*model.tokenizer, segments), row["ids"].get<std::vector<TokenId>>()) << row.dump();
  }
  EXPECT_EQ(rows.size(), 4u);
}

// Random bytes, less those that the vocabulary has no token for, decode to themselves.
inline void expect_any_bytes(const Tokenizer& tokenizer, const std::set<int>& bytes_without_token) {
  std::mt19937 random(17);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes;
    for (int i = static_cast<int>(random() % 32); i > 0; --i) {
      const int byte = static_cast<int>(random() % 256);
      if (!bytes_without_token.contains(byte)) bytes.push_back(static_cast<char>(byte));
    }
    ASSERT_EQ(tokenizer.decode(tokenizer.encode(bytes, Specials::literal)), bytes);
  }
}

// Long single runs do not blow a limit of the pattern engine and lose nothing.
inline void expect_long_runs(const Tokenizer& tokenizer) {
  for (const std::string unit : {"a", "ab", " ", "\n", "!", "9", "\u65e5", "<|im_"}) {
    std::string text;
    while (text.size() < 200000) text += unit;
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(text, Specials::parse)), text);
  }
}

}  // namespace tandem
