// Splits text into the pieces that byte-pair merging never crosses.
#pragma once
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tandem {

// Whether a value of tokenizer.ggml.pre names the kind of Llama 3, whose texts begin with BOS unless a file says
// otherwise, and in which pieces that are tokens as they stand are not merged.
bool is_llama3_pretokenizer(std::string_view name);

class Pretokenizer {
 public:
  // Knows `name` (a value of tokenizer.ggml.pre) or throws Error(model) naming those it does; `where` begins messages.
  Pretokenizer(std::string_view name, std::string_view where);

  // Appends the pieces of `text`, in order and without gaps, as views into it. `text` must be well-formed UTF-8.
  // Each pattern splits every piece of the one before; text between two matches is a piece too. Linear time.
  void split(std::string_view text, std::vector<std::string_view>& pieces) const;

  // True when a piece that is a token as it stands is not merged (Llama 3).
  bool whole_pieces_first() const { return whole_pieces_first_; }

 private:
  struct FreeCode {
    void operator()(pcre2_code* code) const { pcre2_code_free(code); }
  };
  struct FreeContext {
    void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
  };
  struct FreeMatch {
    void operator()(pcre2_match_data* match) const { pcre2_match_data_free(match); }
  };
  using Match = std::unique_ptr<pcre2_match_data, FreeMatch>;

  void add_pattern(const std::string& pattern);
  void split_by(std::size_t pattern, std::string_view text, pcre2_match_data* match,
                std::vector<std::string_view>& pieces) const;

  std::vector<std::unique_ptr<pcre2_code, FreeCode>> patterns_;
  std::unique_ptr<pcre2_match_context, FreeContext> context_;
  bool whole_pieces_first_ = false;
};

}  // namespace tandem
