// compare_logits: what a model says on a backend, on the CPU and in the reference's arithmetic, behind the same text.
// The reference answers the prompt greedily; the others read the prompt and that answer. For each token of the answer
// it prints how far their logits are from the reference's. scripts/gpu_check decides what may be (gpu_compare.py).
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <exception>
#include <nlohmann/json.hpp>
#include <numeric>

#include "kernels/registry.h"
#include "src/base/error.h"
#include "src/engine/model_files.h"
#include "src/engine/session.h"

namespace tandem::test {
namespace {

using Json = nlohmann::ordered_json;
using Row = std::vector<float>;

constexpr int kPrefillRows = 512;  // as runtime.prefill_chunk

struct Arguments {
  std::string model, backend = "auto", prompt;
  int tokens = 32, threads = 0;
};

// A CUDA device rounds the inputs of products with F16 and BF16 matrices in passes of more than kMaxTreeNodes rows; the
// CPU does not, so that it would be no yardstick.
int rows_of_prefill(const Weights& weights) {
  const auto short_floats = [](const std::unique_ptr<Weight>& w) {
    return w && (w->format == Format::f16 || w->format == Format::bf16);
  };
  for (const LayerWeights& l : weights.layers) {
    for (const auto* w : {&l.query, &l.key, &l.value, &l.attention_output, &l.gate, &l.up, &l.down}) {
      if (short_floats(*w)) return kMaxTreeNodes;
    }
  }
  return kPrefillRows;
}

// A model on one backend and the text that it has read.
class Reader {
 public:
  Reader(const ModelFile& file, std::string_view kind, ThreadPool& pool, int most_tokens)
      : backend_(make_backend(kind, pool)),
        model_(file.spec, *file.file, *backend_, kPrefillRows, most_tokens),
        cache_(model_.make_cache(most_tokens, backend_->preferred_kv_type())) {}

  std::string name() const { return std::string(backend_->name()); }
  int rows_of_prefill() const { return tandem::test::rows_of_prefill(model_.weights()); }

  // Its logits behind the last id of a prompt.
  Row read_prompt(std::span<const TokenId> ids) {
    const auto chunk = static_cast<std::size_t>(rows_of_prefill());
    for (; ids.size() > chunk; ids = ids.subspan(chunk)) pass(ids.first(chunk), {});
    const int last = static_cast<int>(ids.size()) - 1;
    const std::span<const float> row = pass(ids, {&last, 1}).row(0);
    return {row.begin(), row.end()};
  }
  // Its logits behind each of at most kMaxTreeNodes ids.
  std::vector<Row> read(std::span<const TokenId> ids) {
    std::vector<int> wanted(ids.size());
    std::iota(wanted.begin(), wanted.end(), 0);
    std::vector<Row> rows;
    if (ids.empty()) return rows;
    const Logits logits = pass(ids, wanted);
    for (const int i : wanted) rows.emplace_back(logits.row(i).begin(), logits.row(i).end());
    return rows;
  }

 private:
  Logits pass(std::span<const TokenId> ids, std::span<const int> wanted) {
    std::vector<Position> positions(ids.size());
    std::iota(positions.begin(), positions.end(), cache_.size());
    return model_.forward({ids, positions, {}, wanted}, cache_);
  }

  std::unique_ptr<Backend> backend_;
  Transformer model_;
  KvCache cache_;
};

// The largest usable logit but that of `without`; ties go to the lowest id.
TokenId best(const Row& row, const TokenMask& usable, TokenId without = -1) {
  TokenId found = -1;
  for (TokenId id = 0; id < static_cast<TokenId>(row.size()); ++id) {
    if (id == without || !usable.allows(id)) continue;
    if (found < 0 || row[id] > row[found]) found = id;
  }
  return found;
}

// Infinite, which JSON has as null, where one of them is no number.
double largest_difference(const Row& a, const Row& b, const TokenMask& usable) {
  double largest = 0;
  for (std::size_t id = 0; id < a.size(); ++id) {
    if (!usable.allows(static_cast<TokenId>(id))) continue;
    const double difference = std::fabs(double{a[id]} - b[id]);
    if (!std::isfinite(difference)) return INFINITY;
    largest = std::max(largest, difference);
  }
  return largest;
}

class Comparison {
 public:
  explicit Comparison(const Arguments& a)
      : a_(a), file_(open_model(a.model)), usable_(usable_tokens(file_)), pool_(make_pool(a.threads)) {
    prompt_ = file_.tokenizer->encode_prompt(a.prompt, Specials::parse);
    if (prompt_.empty()) fail(ErrorKind::usage, "--prompt: expected text, got none");
    answer();
  }

  Json run() {
    Json found = {{"model", file_.path()}, {"prompt_tokens", prompt_.size()}};
    std::vector<Row> rows;
    found["yardstick"] = read("cpu", rows, found);
    const std::vector<double> yardstick = differences(rows);
    found["backend"] = read(a_.backend, rows, found);
    const std::vector<double> device = differences(rows);
    Json& places = found["places"] = Json::array();
    for (std::size_t i = 0; i < ids_.size(); ++i) {
      const Row& truth = truth_[i];
      const TokenId second = best(truth, usable_, ids_[i]);
      places.push_back({{"id", ids_[i]},
                        {"margin", second < 0 ? INFINITY : double{truth[ids_[i]]} - truth[second]},
                        {"backend_id", best(rows[i], usable_)},
                        {"backend_error", device[i]},
                        {"yardstick_error", yardstick[i]}});
    }
    return found;
  }

 private:
  int most_tokens() const { return static_cast<int>(prompt_.size()) + a_.tokens; }

  void answer() {
    Reader reference(file_, "reference", *pool_, most_tokens());
    const std::vector<TokenId> ends = end_ids(file_.tokenizer->vocabulary());
    truth_.push_back(reference.read_prompt(prompt_));
    for (;;) {
      ids_.push_back(best(truth_.back(), usable_));
      if (static_cast<int>(ids_.size()) == a_.tokens || std::ranges::find(ends, ids_.back()) != ends.end()) return;
      truth_.push_back(reference.read({&ids_.back(), 1}).front());
    }
  }

  // The rows of a backend that reads the prompt and the reference's answer. Its name.
  std::string read(std::string_view kind, std::vector<Row>& rows, Json& found) {
    Reader reader(file_, kind, *pool_, most_tokens());
    found["prefill_chunk"] = reader.rows_of_prefill();
    rows.assign(1, reader.read_prompt(prompt_));
    std::ranges::move(reader.read(std::span(ids_).first(ids_.size() - 1)), std::back_inserter(rows));
    return reader.name();
  }

  std::vector<double> differences(const std::vector<Row>& rows) const {
    std::vector<double> all;
    for (std::size_t i = 0; i < rows.size(); ++i) all.push_back(largest_difference(rows[i], truth_[i], usable_));
    return all;
  }

  const Arguments& a_;
  ModelFile file_;
  TokenMask usable_;
  std::unique_ptr<ThreadPool> pool_;
  std::vector<TokenId> prompt_, ids_;  // ids_: the reference's answer
  std::vector<Row> truth_;             // its logits, those that chose each id
};

}  // namespace
}  // namespace tandem::test

int main(int argc, char** argv) {
  tandem::test::Arguments a;
  CLI::App program("Logits of a model on a backend and on the CPU beside the reference's, along its greedy answer");
  program.add_option("--model", a.model, "GGUF file")->required();
  program.add_option("--backend", a.backend, "As runtime.backend")->capture_default_str();
  program.add_option("--prompt", a.prompt, "Raw text")->required();
  program.add_option("--tokens", a.tokens, "Of the answer at most")
      ->check(CLI::Range(1, tandem::kMaxTreeNodes + 1))
      ->capture_default_str();
  program.add_option("--threads", a.threads, "Threads; 0 takes what quota and affinity allow")
      ->check(CLI::Range(0, 256));
  program.footer("Example: compare_logits --model model.gguf --backend cuda --prompt 'Two and two is'");
  CLI11_PARSE(program, argc, argv);
  try {
    fmt::print("{}\n", tandem::test::Comparison(a).run().dump(2));
  } catch (const std::exception& error) {
    fmt::print(stderr, "compare_logits: {}\n", error.what());
    return 1;
  }
}
