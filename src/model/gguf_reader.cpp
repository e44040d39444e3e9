#include "src/model/gguf_reader.h"

#include <array>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "src/model/gguf_cursor.h"

namespace tandem {
namespace {

// Value types of the format.
enum class ValueType : std::uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, text, array, u64, i64, f64 };

constexpr std::uint64_t kTextMinBytes = 8;     // its length
constexpr std::uint64_t kKeyMinBytes = 13;     // key length, value type, the smallest value
constexpr std::uint64_t kTensorMinBytes = 32;  // name length, dimension count, one dimension, type, offset
constexpr std::uint32_t kMostDimensions = 4;
constexpr std::uint64_t kMostArrayValues = std::uint64_t{1} << 22;  // far above any vocabulary or merge list
constexpr std::uint64_t kDefaultAlignment = 32;
constexpr std::string_view kAlignmentKey = "general.alignment";

// Tensor types that GGUF defines and this build does not read, for the message.
std::string_view unread_type_name(std::uint32_t id) {
  constexpr std::pair<std::uint32_t, std::string_view> kNames[] = {
      {4, "Q4_2"},     {5, "Q4_3"},        {9, "Q8_1"},        {10, "Q2_K"},       {11, "Q3_K"},     {15, "Q8_K"},
      {16, "IQ2_XXS"}, {17, "IQ2_XS"},     {18, "IQ3_XXS"},    {19, "IQ1_S"},      {20, "IQ4_NL"},   {21, "IQ3_S"},
      {22, "IQ2_S"},   {23, "IQ4_XS"},     {24, "I8"},         {25, "I16"},        {26, "I32"},      {27, "I64"},
      {28, "F64"},     {29, "IQ1_M"},      {31, "Q4_0_4_4"},   {32, "Q4_0_4_8"},   {33, "Q4_0_8_8"}, {34, "TQ1_0"},
      {35, "TQ2_0"},   {36, "IQ4_NL_4_4"}, {37, "IQ4_NL_4_8"}, {38, "IQ4_NL_8_8"}, {39, "MXFP4"},    {40, "NVFP4"}};
  for (const auto& [known, name] : kNames) {
    if (known == id) return name;
  }
  return {};
}

std::optional<std::uint64_t> multiply(std::uint64_t a, std::uint64_t b) {
  if (a != 0 && b > std::numeric_limits<std::uint64_t>::max() / a) return std::nullopt;
  return a * b;
}

bool read_boolean(GgufCursor& cursor) {
  const auto byte = cursor.number<std::uint8_t>("value");
  if (byte > 1) cursor.fail_here("expected a boolean of 0 or 1, got {}", byte);
  return byte == 1;
}

// An array of file type `Stored`, widened to `Wide`.
template <typename Stored, typename Wide>
GgufArray read_numbers(GgufCursor& cursor, std::uint64_t count) {
  std::vector<Wide> values(count);
  for (Wide& value : values) value = static_cast<Wide>(cursor.number<Stored>("array value"));
  return values;
}

GgufArray read_array(GgufCursor& cursor) {
  using enum ValueType;
  constexpr std::array<std::uint64_t, 13> kBytes = {1, 1, 2, 2, 4, 4, 4, 1, kTextMinBytes, 0, 8, 8, 8};  // by type
  const auto id = cursor.number<std::uint32_t>("array element type");
  if (id >= kBytes.size()) cursor.fail_here("unknown array element type {}", id);
  const auto type = static_cast<ValueType>(id);
  if (type == array) cursor.fail_here("arrays of arrays are not supported");
  const std::uint64_t count = cursor.count("array length", kBytes[id]);
  if (count > kMostArrayValues)
    cursor.fail_here("expected an array of at most {} values, got {}", kMostArrayValues, count);
  switch (type) {
    case u8:
      return read_numbers<std::uint8_t, std::uint64_t>(cursor, count);
    case u16:
      return read_numbers<std::uint16_t, std::uint64_t>(cursor, count);
    case u32:
      return read_numbers<std::uint32_t, std::uint64_t>(cursor, count);
    case u64:
      return read_numbers<std::uint64_t, std::uint64_t>(cursor, count);
    case i8:
      return read_numbers<std::int8_t, std::int64_t>(cursor, count);
    case i16:
      return read_numbers<std::int16_t, std::int64_t>(cursor, count);
    case i32:
      return read_numbers<std::int32_t, std::int64_t>(cursor, count);
    case i64:
      return read_numbers<std::int64_t, std::int64_t>(cursor, count);
    case f32:
      return read_numbers<float, double>(cursor, count);
    case f64:
      return read_numbers<double, double>(cursor, count);
    case boolean: {
      std::vector<bool> values;
      for (std::uint64_t i = 0; i < count; ++i) values.push_back(read_boolean(cursor));
      return values;
    }
    default: {
      // Grown as texts are found: the count only promises eight bytes each.
      std::vector<std::string> values;
      for (std::uint64_t i = 0; i < count; ++i) values.emplace_back(cursor.text("array text"));
      return values;
    }
  }
}

GgufValue read_value(GgufCursor& cursor) {
  using enum ValueType;
  const auto id = cursor.number<std::uint32_t>("value type");
  switch (static_cast<ValueType>(id)) {
    case u8:
      return std::uint64_t{cursor.number<std::uint8_t>("value")};
    case u16:
      return std::uint64_t{cursor.number<std::uint16_t>("value")};
    case u32:
      return std::uint64_t{cursor.number<std::uint32_t>("value")};
    case u64:
      return cursor.number<std::uint64_t>("value");
    case i8:
      return std::int64_t{cursor.number<std::int8_t>("value")};
    case i16:
      return std::int64_t{cursor.number<std::int16_t>("value")};
    case i32:
      return std::int64_t{cursor.number<std::int32_t>("value")};
    case i64:
      return cursor.number<std::int64_t>("value");
    case f32:
      return double{cursor.number<float>("value")};
    case f64:
      return cursor.number<double>("value");
    case boolean:
      return read_boolean(cursor);
    case text:
      return std::string(cursor.text("text value"));
    case array:
      return read_array(cursor);
    default:
      cursor.fail_here("unknown value type {}", id);
  }
}

int read_version(GgufCursor& cursor) {
  const auto magic = cursor.number<std::array<char, 4>>("magic");
  const std::string_view found(magic.data(), magic.size());
  if (found != "GGUF") cursor.fail_here("not a GGUF file: expected the magic \"GGUF\", got \"{}\"", printable(found));
  const auto version = cursor.number<std::uint32_t>("version");
  if (version == 1) cursor.fail_here("GGUF version 1 is not supported: expected version 2 or 3");
  if (version != 0 && (version & 0xffffu) == 0)
    cursor.fail_here("big-endian GGUF is not supported: expected little-endian");
  if (version != 2 && version != 3) cursor.fail_here("expected GGUF version 2 or 3, got {}", version);
  return static_cast<int>(version);
}

void read_metadata(GgufCursor& cursor, std::uint64_t count, std::map<std::string, GgufValue, std::less<>>& metadata) {
  for (std::uint64_t i = 0; i < count; ++i) {
    cursor.set_place(fmt::format("metadata key {} of {}", i + 1, count));
    std::string key(cursor.text("key"));
    cursor.set_place("metadata " + printable(key));
    GgufValue value = read_value(cursor);
    if (!metadata.emplace(std::move(key), std::move(value)).second) cursor.fail_here("the key appears twice");
  }
}

std::uint64_t alignment_of(const GgufCursor& cursor, const GgufDirectory& directory) {
  const auto found = directory.metadata.find(kAlignmentKey);
  if (found == directory.metadata.end()) return kDefaultAlignment;
  std::uint64_t alignment = 0;
  if (const auto* value = std::get_if<std::uint64_t>(&found->second)) {
    alignment = *value;
  } else if (const auto* signed_value = std::get_if<std::int64_t>(&found->second)) {
    if (*signed_value < 0) cursor.fail_here("{}: expected a power of two, got {}", kAlignmentKey, *signed_value);
    alignment = static_cast<std::uint64_t>(*signed_value);
  } else if (const auto* words = std::get_if<std::string>(&found->second)) {
    cursor.fail_here("{}: expected an integer, got the text \"{}\"", kAlignmentKey, printable(*words));
  } else {
    cursor.fail_here("{}: expected an integer, got another type", kAlignmentKey);
  }
  if (!std::has_single_bit(alignment))
    cursor.fail_here("{}: expected a power of two, got {}", kAlignmentKey, alignment);
  return alignment;
}

// A tensor's entry as it stands in the file; its data is looked up once the start of the data section is known.
struct Entry {
  GgufTensor tensor;
  std::uint64_t offset;
  std::uint64_t bytes;
};

std::vector<std::int64_t> read_shape(GgufCursor& cursor) {
  const auto dimensions = cursor.number<std::uint32_t>("dimension count");
  if (dimensions < 1 || dimensions > kMostDimensions) {
    cursor.fail_here("expected 1 to {} dimensions, got {}", kMostDimensions, dimensions);
  }
  std::vector<std::int64_t> shape;
  for (std::uint32_t i = 0; i < dimensions; ++i) {
    const auto size = cursor.number<std::uint64_t>("dimension");
    if (size < 1 || size > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      cursor.fail_here("dimension {}: expected at least 1 and below 2^63, got {}", i, size);
    }
    shape.push_back(static_cast<std::int64_t>(size));
  }
  return shape;
}

FormatInfo read_format(GgufCursor& cursor) {
  const auto id = cursor.number<std::uint32_t>("type id");
  const std::optional<FormatInfo> info = format_info(id);
  if (info) return *info;
  const std::string_view name = unread_type_name(id);
  if (name.empty()) cursor.fail_here("unknown tensor type id {}", id);
  cursor.fail_here("tensor type {} (id {}) is not supported by this build", name, id);
}

// Bytes of a tensor of whole blocks. A row takes at least two, so rows() of a tensor that fits the file cannot
// overflow.
std::uint64_t tensor_bytes(const GgufCursor& cursor, const std::vector<std::int64_t>& shape, const FormatInfo& info) {
  const auto columns = static_cast<std::uint64_t>(shape[0]);
  const auto block_values = static_cast<std::uint64_t>(info.block_values);
  if (columns % block_values != 0) {
    cursor.fail_here("expected columns in multiples of {} for {}, got {}", block_values, info.name, columns);
  }
  std::optional<std::uint64_t> bytes = multiply(columns / block_values, static_cast<std::uint64_t>(info.block_bytes));
  for (std::size_t i = 1; i < shape.size() && bytes; ++i)
    bytes = multiply(*bytes, static_cast<std::uint64_t>(shape[i]));
  if (!bytes)
    cursor.fail_here("shape [{}] (fastest first) in {}: its size in bytes overflows 64 bits", fmt::join(shape, ", "),
                     info.name);
  return *bytes;
}

std::vector<Entry> read_entries(GgufCursor& cursor, std::uint64_t count) {
  std::vector<Entry> entries;
  std::set<std::string, std::less<>> names;
  for (std::uint64_t i = 0; i < count; ++i) {
    cursor.set_place(fmt::format("tensor {} of {}", i + 1, count));
    std::string name(cursor.text("name"));
    cursor.set_place("tensor " + printable(name));
    if (!names.insert(name).second) cursor.fail_here("the name appears twice");
    std::vector<std::int64_t> shape = read_shape(cursor);
    const FormatInfo info = read_format(cursor);
    const std::uint64_t bytes = tensor_bytes(cursor, shape, info);
    const auto offset = cursor.number<std::uint64_t>("data offset");
    entries.push_back({{std::move(name), info.format, std::move(shape), {}}, offset, bytes});
  }
  return entries;
}

// Points every tensor at its data: the section starts at the first aligned byte after the directory.
void place_data(GgufCursor& cursor, std::span<const std::byte> file, std::uint64_t alignment,
                std::vector<Entry>& entries, std::vector<GgufTensor>& tensors) {
  const std::uint64_t past = cursor.offset() & (alignment - 1);
  const std::uint64_t padding = past == 0 ? 0 : alignment - past;
  const std::uint64_t section_bytes = padding > cursor.left() ? 0 : cursor.left() - padding;
  const std::span<const std::byte> section = file.last(section_bytes);
  for (Entry& entry : entries) {
    cursor.set_place("tensor " + printable(entry.tensor.name));
    if ((entry.offset & (alignment - 1)) != 0) {
      cursor.fail_here("expected a data offset in multiples of {}, got {}", alignment, entry.offset);
    }
    if (entry.offset > section_bytes || entry.bytes > section_bytes - entry.offset) {
      cursor.fail_here("needs {} bytes at byte {} of the tensor data, which has {} bytes (file of {} bytes)",
                       entry.bytes, entry.offset, section_bytes, file.size());
    }
    entry.tensor.data = section.subspan(entry.offset, entry.bytes);
    tensors.push_back(std::move(entry.tensor));
  }
}

}  // namespace

GgufDirectory read_gguf_directory(std::span<const std::byte> file, std::string_view file_name) {
  GgufCursor cursor(file, file_name);
  GgufDirectory directory{read_version(cursor), {}, {}};
  const std::uint64_t tensors = cursor.count("tensor count", kTensorMinBytes);
  const std::uint64_t keys = cursor.count("metadata key count", kKeyMinBytes);
  read_metadata(cursor, keys, directory.metadata);
  cursor.set_place("metadata");
  const std::uint64_t alignment = alignment_of(cursor, directory);
  std::vector<Entry> entries = read_entries(cursor, tensors);
  place_data(cursor, file, alignment, entries, directory.tensors);
  return directory;
}

}  // namespace tandem
