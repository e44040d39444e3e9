// GGUF v2/v3 files: metadata and tensor directory over a memory-mapped file, every field checked before use.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "kernels/quant/format.h"
#include "src/base/mapped_file.h"

namespace tandem {

// One tensor where it lies in the file. Matrices are row-major [rows, columns]: `columns` is GGUF's first dimension.
struct GgufTensor {
  std::string name;
  Format format;
  std::vector<std::int64_t> shape;  // as in the file, fastest first; 1..4 dimensions, each >= 1
  std::span<const std::byte> data;  // inside the mapping; lives as long as the file
  std::int64_t columns() const { return shape[0]; }
  std::int64_t rows() const;  // product of the other dimensions
};

// A metadata value. Integers of all widths widen to 64 bits (sign kept); arrays hold one element type.
using GgufArray = std::variant<std::vector<std::int64_t>, std::vector<std::uint64_t>, std::vector<double>,
                               std::vector<bool>, std::vector<std::string>>;
using GgufValue = std::variant<std::int64_t, std::uint64_t, double, bool, std::string, GgufArray>;

class GgufFile {
 public:
  // Maps and checks the whole directory (not the weights). Throws Error(file) naming file, field or tensor, needed and
  // actual size, within a second and without reserving memory for absurd counts.
  static std::unique_ptr<GgufFile> open(const std::string& path);

  const std::string& path() const;
  std::string name() const;  // last part of the path, for messages
  std::uint64_t file_bytes() const;
  const MappedFile& mapping() const;  // what tensor data points into
  int version() const;

  const std::map<std::string, GgufValue, std::less<>>& metadata() const;
  bool has(std::string_view key) const;
  // Typed reads. Missing key or other type: Error(model) naming file, key, expected and actual type. The `_or` forms
  // give the default when the key is missing (another type still throws).
  std::string text(std::string_view key) const;
  std::string text_or(std::string_view key, std::string fallback) const;
  std::int64_t integer(std::string_view key, std::int64_t low, std::int64_t high) const;  // range checked
  std::int64_t integer_or(std::string_view key, std::int64_t fallback, std::int64_t low, std::int64_t high) const;
  double real_or(std::string_view key, double fallback) const;  // finite, else Error
  double real(std::string_view key) const;
  bool boolean_or(std::string_view key, bool fallback) const;
  const std::vector<std::string>& texts(std::string_view key) const;
  std::vector<std::int64_t> integers(std::string_view key) const;  // any integer element type
  const std::vector<double>& reals(std::string_view key) const;

  const std::vector<GgufTensor>& tensors() const;  // in file order
  const GgufTensor* find(std::string_view tensor) const;
  // The tensor, checked to have exactly this shape [rows, columns] (rows 1 = a vector). Error(model) in the style
  // `model.gguf: tensor blk.3.attn_k.weight: expected [1536, 256], got [1536, 255]`.
  const GgufTensor& require(std::string_view tensor, std::int64_t rows, std::int64_t columns) const;

  ~GgufFile();

 private:
  GgufFile();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tandem
