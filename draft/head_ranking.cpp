#include "draft/head_ranking.h"

#include <charconv>
#include <fstream>

#include "src/base/error.h"

namespace tandem {
namespace {

// The id that a line holds between blanks.
TokenId parse_id(std::string_view line, int vocabulary, const std::string& path, int number) {
  const std::size_t begin = line.find_first_not_of(" \t\r"), end = line.find_last_not_of(" \t\r") + 1;
  const std::string_view word = line.substr(begin, end - begin);
  TokenId id = -1;
  const auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), id);
  if (error != std::errc() || stop != word.data() + word.size() || id < 0 || id >= vocabulary) {
    fail(ErrorKind::file, "{}:{}: expected a token id in 0..{}, got \"{}\"", path, number, vocabulary - 1,
         word.substr(0, 40));
  }
  return id;
}

}  // namespace

std::vector<TokenId> read_head_ranking(const std::string& path, int vocabulary) {
  std::ifstream file(path);
  if (!file) fail(ErrorKind::file, "{}: cannot be read", path);
  std::vector<TokenId> ranking;
  std::vector<bool> seen(static_cast<std::size_t>(vocabulary));
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (line.starts_with('#') || line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const TokenId id = parse_id(line, vocabulary, path, number);
    if (seen[static_cast<std::size_t>(id)]) {
      fail(ErrorKind::file, "{}:{}: expected each token id once, got {} again", path, number, id);
    }
    seen[static_cast<std::size_t>(id)] = true;
    ranking.push_back(id);
  }
  if (ranking.empty()) fail(ErrorKind::file, "{}: expected one token id a line, got none", path);
  return ranking;
}

std::vector<TokenId> kept_head_tokens(int rows, std::span<const TokenId> ranking, std::span<const TokenId> always,
                                      const TokenMask& usable, int vocabulary) {
  std::vector<bool> kept(static_cast<std::size_t>(vocabulary));
  int left = rows;
  const auto keep = [&](TokenId token) {
    if (left == 0 || token >= vocabulary || !usable.allows(token) || kept[static_cast<std::size_t>(token)]) return;
    kept[static_cast<std::size_t>(token)] = true;
    --left;
  };
  for (const TokenId token : ranking) keep(token);
  for (TokenId token = 0; token < vocabulary; ++token) keep(token);
  left = static_cast<int>(always.size());
  for (const TokenId token : always) keep(token);

  std::vector<TokenId> tokens;
  bool all = true;
  for (TokenId token = 0; token < vocabulary; ++token) {
    if (kept[static_cast<std::size_t>(token)]) tokens.push_back(token);
    all = all && (kept[static_cast<std::size_t>(token)] || !usable.allows(token));
  }
  return all ? std::vector<TokenId>{} : tokens;
}

}  // namespace tandem
