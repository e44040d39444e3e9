#include "src/model/gguf.h"

#include <cmath>
#include <utility>

#include "src/base/error.h"
#include "src/model/gguf_reader.h"

namespace tandem {
namespace {

// What a value is, in words for messages.
std::string_view type_name(const GgufValue& value) {
  struct Names {
    std::string_view operator()(std::int64_t) const { return "an integer"; }
    std::string_view operator()(std::uint64_t) const { return "an integer"; }
    std::string_view operator()(double) const { return "a float"; }
    std::string_view operator()(bool) const { return "a boolean"; }
    std::string_view operator()(const std::string&) const { return "a text"; }
    std::string_view operator()(const GgufArray& array) const {
      constexpr std::string_view kArrays[] = {"an array of integers", "an array of integers", "an array of floats",
                                              "an array of booleans", "an array of texts"};
      return kArrays[array.index()];
    }
  };
  return std::visit(Names{}, value);
}

std::string file_part(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

// [rows, columns] for messages: GGUF's order reversed.
std::string shape_text(const std::vector<std::int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape.rbegin(), shape.rend(), ", "));
}

}  // namespace

std::int64_t GgufTensor::rows() const {
  std::int64_t rows = 1;
  for (std::size_t i = 1; i < shape.size(); ++i) rows *= shape[i];
  return rows;
}

struct GgufFile::Impl {
  explicit Impl(const std::string& path)
      : file(path), name(file_part(path)), directory(read_gguf_directory(file.bytes(), name)) {
    for (const GgufTensor& tensor : directory.tensors) by_name.emplace(tensor.name, &tensor);
  }

  const GgufValue* find(std::string_view key) const {
    const auto found = directory.metadata.find(key);
    return found == directory.metadata.end() ? nullptr : &found->second;
  }

  [[noreturn]] void fail_type(std::string_view key, std::string_view expected, const GgufValue* value) const {
    fail(ErrorKind::model, "{}: metadata {}: expected {}, got {}", name, key, expected,
         value ? type_name(*value) : "no such key");
  }

  // The value as T; a missing key or another type is an Error.
  template <typename T>
  const T& get(std::string_view key, std::string_view expected) const {
    const GgufValue* value = find(key);
    const T* typed = value ? std::get_if<T>(value) : nullptr;
    if (!typed) fail_type(key, expected, value);
    return *typed;
  }

  template <typename T>
  const std::vector<T>* find_array(std::string_view key) const {
    const GgufValue* value = find(key);
    const auto* array = value ? std::get_if<GgufArray>(value) : nullptr;
    return array ? std::get_if<std::vector<T>>(array) : nullptr;
  }

  MappedFile file;
  std::string name;
  GgufDirectory directory;
  std::map<std::string_view, const GgufTensor*> by_name;  // into directory.tensors
};

GgufFile::GgufFile() = default;
GgufFile::~GgufFile() = default;

std::unique_ptr<GgufFile> GgufFile::open(const std::string& path) {
  std::unique_ptr<GgufFile> file(new GgufFile);
  file->impl_ = std::make_unique<Impl>(path);
  return file;
}

const std::string& GgufFile::path() const { return impl_->file.path(); }
std::string GgufFile::name() const { return impl_->name; }
const MappedFile& GgufFile::mapping() const { return impl_->file; }
std::uint64_t GgufFile::file_bytes() const { return impl_->file.bytes().size(); }
int GgufFile::version() const { return impl_->directory.version; }

const std::map<std::string, GgufValue, std::less<>>& GgufFile::metadata() const { return impl_->directory.metadata; }
bool GgufFile::has(std::string_view key) const { return impl_->find(key) != nullptr; }

std::string GgufFile::text(std::string_view key) const { return impl_->get<std::string>(key, "a text"); }

std::string GgufFile::text_or(std::string_view key, std::string fallback) const {
  return has(key) ? text(key) : std::move(fallback);
}

std::int64_t GgufFile::integer(std::string_view key, std::int64_t low, std::int64_t high) const {
  const GgufValue* value = impl_->find(key);
  const auto out_of_range = [&](auto got) {
    fail(ErrorKind::model, "{}: metadata {}: expected an integer from {} to {}, got {}", impl_->name, key, low, high,
         got);
  };
  if (const auto* number = value ? std::get_if<std::uint64_t>(value) : nullptr) {
    if (std::cmp_less(*number, low) || std::cmp_greater(*number, high)) out_of_range(*number);
    return static_cast<std::int64_t>(*number);
  }
  const auto* number = value ? std::get_if<std::int64_t>(value) : nullptr;
  if (!number) impl_->fail_type(key, "an integer", value);
  if (*number < low || *number > high) out_of_range(*number);
  return *number;
}

std::int64_t GgufFile::integer_or(std::string_view key, std::int64_t fallback, std::int64_t low,
                                  std::int64_t high) const {
  return has(key) ? integer(key, low, high) : fallback;
}

double GgufFile::real(std::string_view key) const {
  const double value = impl_->get<double>(key, "a float");
  if (!std::isfinite(value))
    fail(ErrorKind::model, "{}: metadata {}: expected a finite float, got {}", impl_->name, key, value);
  return value;
}

double GgufFile::real_or(std::string_view key, double fallback) const { return has(key) ? real(key) : fallback; }

bool GgufFile::boolean_or(std::string_view key, bool fallback) const {
  return has(key) ? impl_->get<bool>(key, "a boolean") : fallback;
}

const std::vector<std::string>& GgufFile::texts(std::string_view key) const {
  const auto* texts = impl_->find_array<std::string>(key);
  if (!texts) impl_->fail_type(key, "an array of texts", impl_->find(key));
  return *texts;
}

std::vector<std::int64_t> GgufFile::integers(std::string_view key) const {
  if (const auto* numbers = impl_->find_array<std::int64_t>(key)) return *numbers;
  const auto* numbers = impl_->find_array<std::uint64_t>(key);
  if (!numbers) impl_->fail_type(key, "an array of integers", impl_->find(key));
  std::vector<std::int64_t> out;
  out.reserve(numbers->size());
  for (const std::uint64_t number : *numbers) {
    if (!std::in_range<std::int64_t>(number)) {
      fail(ErrorKind::model, "{}: metadata {}: expected integers below 2^63, got {}", impl_->name, key, number);
    }
    out.push_back(static_cast<std::int64_t>(number));
  }
  return out;
}

const std::vector<double>& GgufFile::reals(std::string_view key) const {
  const auto* numbers = impl_->find_array<double>(key);
  if (!numbers) impl_->fail_type(key, "an array of floats", impl_->find(key));
  return *numbers;
}

const std::vector<GgufTensor>& GgufFile::tensors() const { return impl_->directory.tensors; }

const GgufTensor* GgufFile::find(std::string_view tensor) const {
  const auto found = impl_->by_name.find(tensor);
  return found == impl_->by_name.end() ? nullptr : found->second;
}

const GgufTensor& GgufFile::require(std::string_view tensor, std::int64_t rows, std::int64_t columns) const {
  const GgufTensor* found = find(tensor);
  const std::string expected = rows == 1 ? shape_text({columns}) : shape_text({columns, rows});
  if (!found) fail(ErrorKind::model, "{}: tensor {}: expected {}, got no such tensor", impl_->name, tensor, expected);
  // Further dimensions of 1 do not change what the tensor is.
  const bool matrix = found->shape.size() < 2 || found->rows() == found->shape[1];
  if (!matrix || found->columns() != columns || found->rows() != rows) {
    fail(ErrorKind::model, "{}: tensor {}: expected {}, got {}", impl_->name, tensor, expected,
         shape_text(found->shape));
  }
  return *found;
}

}  // namespace tandem
