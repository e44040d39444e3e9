// The file: a line that names its kind, a line with a JSON header, the tokens and the cache's images as they lie in
// memory (little-endian), and the SHA-256 of all that as 64 hex digits.
#include "src/engine/session_file.h"

#include <fmt/ranges.h>

#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "src/base/atomic_file.h"
#include "src/base/mapped_file.h"
#include "src/engine/file_hash.h"
#include "src/model/gguf_cursor.h"

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kMagic = "tandem session 1\n";
constexpr std::size_t kDigestBytes = 64;

struct Content {
  Json header;
  std::span<const std::byte> tokens, layers;
};

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::uint64_t count_at(const Json& header, const char* key, const std::string& path) {
  const auto value = header.find(key);
  if (value == header.end() || !value->is_number_unsigned()) {
    fail(ErrorKind::file, "{}: changed: header: {}: expected a count, got {}", path, key,
         value == header.end() ? "nothing" : value->dump());
  }
  return *value;
}

// The parts, once the file is known to be whole.
Content split(std::span<const std::byte> bytes, const std::string& path) {
  const std::string_view text = text_of(bytes);
  if (!text.starts_with(kMagic)) {
    fail(ErrorKind::file, "{}: expected a session file, which begins with \"{}\", got \"{}\"", path,
         kMagic.substr(0, kMagic.size() - 1), printable(text.substr(0, kMagic.size())));
  }
  const std::size_t end = text.find('\n', kMagic.size());
  if (end == text.npos) fail(ErrorKind::file, "{}: cut: {} bytes end within the header", path, bytes.size());
  Content content{Json::parse(text.substr(kMagic.size(), end - kMagic.size()), nullptr, false), {}, {}};
  if (!content.header.is_object()) fail(ErrorKind::file, "{}: changed: header: expected a JSON object", path);

  const std::uint64_t tokens = count_at(content.header, "tokens", path);
  const std::uint64_t layers = count_at(content.header, "cache_bytes", path);
  const std::uint64_t body = bytes.size() - (end + 1);
  constexpr std::uint64_t kMost = std::uint64_t{1} << 60;
  const std::uint64_t expected =
      tokens > kMost / sizeof(TokenId) || layers > kMost ? kMost : tokens * sizeof(TokenId) + layers + kDigestBytes;
  if (body != expected) {
    fail(ErrorKind::file, "{}: {}: expected {} bytes behind the header, got {}", path,
         body < expected ? "cut" : "changed", expected, body);
  }
  Sha256 digest;
  digest.add(bytes.first(bytes.size() - kDigestBytes));
  const std::string found = digest.hex();
  if (const std::string_view written = text.substr(text.size() - kDigestBytes); written != found) {
    fail(ErrorKind::file, "{}: changed: expected the SHA-256 {} of its last bytes, got {}", path, printable(written),
         found);
  }
  content.tokens = bytes.subspan(end + 1, tokens * sizeof(TokenId));
  content.layers = bytes.subspan(end + 1 + content.tokens.size(), layers);
  return content;
}

std::string value_of(const Json& identity, const std::string& name) {
  const auto value = identity.find(name);
  return value != identity.end() && value->is_string() ? printable(value->get<std::string>()) : "nothing";
}

void require_same_identity(const Json& header, const Session& session, const std::string& path) {
  const Json written = header.value("identity", Json::object());
  std::vector<std::string> differences;
  for (const auto& [name, value] : cache_identity(session)) {
    const std::string other = value_of(written, name);
    if (other != printable(value)) differences.push_back(fmt::format("{} {} (here {})", name, other, value));
  }
  if (!differences.empty()) {
    fail(ErrorKind::file, "{}: written by a run with {}, so its cache is of no use here; remove it or name another",
         path, fmt::join(differences, ", "));
  }
}

std::vector<TokenId> checked_tokens(std::span<const std::byte> bytes, const Session& session, const std::string& path) {
  std::vector<TokenId> tokens(bytes.size() / sizeof(TokenId));
  if (!tokens.empty()) std::memcpy(tokens.data(), bytes.data(), bytes.size());
  if (tokens.size() > static_cast<std::size_t>(session.context())) {
    fail(ErrorKind::file, "{}: expected at most {} tokens (target.context), got {}", path, session.context(),
         tokens.size());
  }
  const int vocabulary = session.target().spec.vocab;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] < 0 || tokens[i] >= vocabulary) {
      fail(ErrorKind::file, "{}: token {}: expected 0..{}, got {}", path, i, vocabulary - 1, tokens[i]);
    }
  }
  return tokens;
}

}  // namespace

CacheIdentity cache_identity(const Session& session) {
  const ModelFile& target = session.target();
  const Vocabulary& vocabulary = session.tokenizer().vocabulary();
  CacheIdentity identity = {{"version", TANDEM_VERSION},
                            {"model", file_sha256(target.path())},
                            {"tokenizer", vocabulary.model + "/" + vocabulary.pre},
                            {"template", session.chat() ? text_sha256(target.template_text) : "none"},
                            {"kv_cache", std::string(name_of(session.target_kv_type()))},
                            {"backend", std::string(session.backend().name())}};
  // Keys are stored rotated, with factors that target.context decides on.
  if (!target.spec.rope_long_divisors.empty()) {
    identity.emplace_back("rope", target.spec.ropes_long(session.context()) ? "long" : "short");
  }
  return identity;
}

int write_session_file(const std::string& path, const Session& session) {
  const Engine& engine = session.engine();
  const int held = engine.cache().size();
  const auto tokens = std::as_bytes(engine.context().tokens().first(static_cast<std::size_t>(held)));
  Json identity = Json::object();
  for (const auto& [name, value] : cache_identity(session)) identity[name] = value;
  const Json header = {{"identity", std::move(identity)},
                       {"tokens", held},
                       {"lost", engine.cache().lost()},
                       {"cache_bytes", engine.cache().image_bytes(held)}};
  AtomicFile file(path);
  Sha256 digest;
  const auto write = [&](std::span<const std::byte> bytes) {
    digest.add(bytes);
    file.write(bytes);
  };
  const std::string start = std::string(kMagic) + header.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  write(std::as_bytes(std::span(start)));
  write(tokens);
  for (int layer = 0; layer < session.target().spec.layers; ++layer) write(engine.cache().image(layer));
  file.write(digest.hex());
  file.commit();
  return held;
}

int read_session_file(const std::string& path, Session& session) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return 0;
  const MappedFile file(path);
  const Content content = split(file.bytes(), path);
  require_same_identity(content.header, session, path);
  const std::vector<TokenId> tokens = checked_tokens(content.tokens, session, path);
  const int held = static_cast<int>(tokens.size());
  if (const std::size_t expected = session.engine().cache().image_bytes(held); content.layers.size() != expected) {
    fail(ErrorKind::file,
         "{}: expected {} bytes of cache for {} tokens, got {}; those of sliding windows depend on target.context and "
         "runtime.prefill_chunk",
         path, expected, held, content.layers.size());
  }
  const std::uint64_t lost = count_at(content.header, "lost", path);
  if (lost > tokens.size()) fail(ErrorKind::file, "{}: header: lost: expected 0..{}, got {}", path, held, lost);
  session.engine().restore(tokens, static_cast<int>(lost), content.layers);
  return held;
}

}  // namespace tandem
