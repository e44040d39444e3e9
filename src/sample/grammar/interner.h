// Values kept once each, by number.
#pragma once
#include <cstddef>
#include <unordered_set>
#include <vector>

namespace tandem {

// Equal values get equal numbers, from 0 on. `Hash`: of a value. References into it hold until the next intern().
template <typename T, typename Hash>
class Interner {
 public:
  Interner() : numbers_(0, HashOf{this}, Equal{this}) {}
  Interner(const Interner&) = delete;  // the set holds the address
  Interner& operator=(const Interner&) = delete;

  int intern(T value) {
    values_.push_back(std::move(value));
    const int number = static_cast<int>(values_.size()) - 1;
    const auto [known, is_new] = numbers_.insert(number);
    if (!is_new) values_.pop_back();
    return *known;
  }
  const T& operator[](int number) const { return values_[static_cast<std::size_t>(number)]; }
  std::size_t size() const { return values_.size(); }
  void clear() {
    numbers_.clear();
    values_.clear();
  }

 private:
  struct HashOf {
    const Interner* all;
    std::size_t operator()(int number) const { return Hash{}((*all)[number]); }
  };
  struct Equal {
    const Interner* all;
    bool operator()(int a, int b) const { return (*all)[a] == (*all)[b]; }
  };
  std::vector<T> values_;
  std::unordered_set<int, HashOf, Equal> numbers_;
};

// Folds the next number into a hash (the finaliser of splitmix64).
inline std::size_t mix_hash(std::size_t hash, std::size_t next) {
  std::size_t x = hash * 0x9E3779B97F4A7C15u + next + 0x7F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

}  // namespace tandem
