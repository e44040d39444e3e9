// Writes small GGUF files (version 2 or 3, little-endian) for tests: well-formed by default, wrong on purpose where
// asked.
#pragma once
#include <cstdint>
#include <cstring>
#include <fstream>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "kernels/quant/format.h"

namespace tandem::test {

class GgufBuilder {
 public:
  explicit GgufBuilder(std::uint32_t version = 3) : version_(version) {}

  // A metadata key. The C++ type picks GGUF's: the sized integers, float, double, bool, text, and std::vector of those.
  template <typename T>
  GgufBuilder& set(std::string_view key, const T& value) {
    std::string bytes;
    append_value(bytes, value);
    return set_raw(key, type_id<T>(), bytes);
  }

  // A metadata key of any type id and content.
  GgufBuilder& set_raw(std::string_view key, std::uint32_t type, std::string_view bytes) {
    append_text(keys_, key);
    append(keys_, type);
    keys_ += bytes;
    ++key_count_;
    return *this;
  }

  // Writes general.alignment and lays the tensors out by it.
  GgufBuilder& align(std::uint32_t alignment) {
    alignment_ = alignment;
    return set("general.alignment", alignment);
  }

  // A tensor whose data is whole blocks of the format; `shape` is fastest first, so a matrix is {columns, rows}.
  GgufBuilder& tensor(std::string_view name, const std::vector<std::uint64_t>& shape, Format format,
                      std::string_view data) {
    return tensor_raw(name, shape, static_cast<std::uint32_t>(format), data);
  }

  GgufBuilder& tensor_f32(std::string_view name, const std::vector<std::uint64_t>& shape,
                          std::span<const float> values) {
    return tensor(name, shape, Format::f32, {reinterpret_cast<const char*>(values.data()), values.size_bytes()});
  }

  // A tensor of any type id, dimensions and data; `offset` replaces where its data really lies.
  GgufBuilder& tensor_raw(std::string_view name, const std::vector<std::uint64_t>& shape, std::uint32_t type,
                          std::string_view data, std::optional<std::uint64_t> offset = std::nullopt) {
    pad(data_);
    append_text(tensors_, name);
    append(tensors_, static_cast<std::uint32_t>(shape.size()));
    for (const std::uint64_t size : shape) append(tensors_, size);
    append(tensors_, type);
    append(tensors_, offset.value_or(data_.size()));
    data_ += data;
    ++tensor_count_;
    return *this;
  }

  // Counts for the header in place of the true ones.
  GgufBuilder& claim_counts(std::uint64_t tensors, std::uint64_t keys) {
    tensor_count_ = tensors;
    key_count_ = keys;
    return *this;
  }

  // Everything before the tensor data, padding included.
  std::string head() const {
    std::string out = "GGUF";
    append(out, version_);
    append(out, tensor_count_);
    append(out, key_count_);
    out += keys_;
    out += tensors_;
    pad(out);
    return out;
  }

  std::string bytes() const { return head() + data_; }

  void write(const std::string& path) const {
    std::ofstream out(path, std::ios::binary);
    const std::string content = bytes();
    out.write(content.data(), static_cast<std::streamsize>(content.size()));
    if (!out.flush()) throw std::runtime_error("cannot write " + path);
  }

 private:
  template <typename T>
  struct IsVector : std::false_type {};
  template <typename T>
  struct IsVector<std::vector<T>> : std::true_type {};

  static constexpr std::uint32_t kText = 8;
  static constexpr std::uint32_t kArray = 9;

  template <typename T>
  static constexpr std::uint32_t type_id() {
    if constexpr (IsVector<T>::value) {
      return kArray;
    } else if constexpr (std::is_convertible_v<T, std::string_view>) {
      return kText;
    } else if constexpr (std::is_same_v<T, bool>) {
      return 7;
    } else if constexpr (std::is_floating_point_v<T>) {
      return sizeof(T) == 4 ? 6 : 12;
    } else {
      static_assert(std::is_integral_v<T>);
      constexpr std::uint32_t kUnsigned = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 2 : sizeof(T) == 4 ? 4 : 10;
      return kUnsigned + (std::is_signed_v<T> ? 1 : 0);
    }
  }

  template <typename T>
  static void append(std::string& out, const T& number) {
    static_assert(std::is_arithmetic_v<T>);
    out.append(reinterpret_cast<const char*>(&number), sizeof number);
  }

  static void append_text(std::string& out, std::string_view text) {
    append(out, static_cast<std::uint64_t>(text.size()));
    out += text;
  }

  template <typename T>
  static void append_value(std::string& out, const T& value) {
    if constexpr (IsVector<T>::value) {
      using Element = typename T::value_type;
      append(out, type_id<Element>());
      append(out, static_cast<std::uint64_t>(value.size()));
      for (const Element& element : value) append_value(out, element);
    } else if constexpr (std::is_convertible_v<T, std::string_view>) {
      append_text(out, value);
    } else {
      append(out, value);
    }
  }

  void pad(std::string& out) const { out.resize((out.size() + alignment_ - 1) / alignment_ * alignment_, '\0'); }

  std::uint32_t version_;
  std::uint64_t alignment_ = 32;
  std::uint64_t tensor_count_ = 0;
  std::uint64_t key_count_ = 0;
  std::string keys_;
  std::string tensors_;
  std::string data_;
};

}  // namespace tandem::test
