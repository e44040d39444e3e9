// The tokenizer of a real model: opening it, text to ids and ids to streamed text, in bytes of text a second. See
// README.md.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <string>
#include <string_view>

#include "bench/model_argument.h"
#include "src/engine/model_files.h"
#include "src/text/text_stream.h"

namespace tandem {
namespace {

struct Sample {
  const char* name;
  std::string_view text;  // repeated up to the size of a case
};

constexpr Sample kSamples[] = {
    {"english",
     "The lighthouse keeper found a bottle on the 3rd of May; inside lay a letter, half faded, that began: \"If you "
     "read this, we've reached the island.\" He didn't believe a word of it, and yet he packed at once.\n\n"},
    {"code",
     "def merge(intervals: list[tuple[int, int]]) -> list[tuple[int, int]]:\n    merged = []\n    for low, high in "
     "sorted(intervals):\n        if merged and low <= merged[-1][1]:\n            merged[-1] = (merged[-1][0], "
     "max(merged[-1][1], high))\n        else:\n            merged.append((low, high))\n    return merged\n\n"},
    {"chinese", "用中文介绍一下中国的四大发明及其对世界的影响。造纸术、印刷术、火药和指南针改变了整个世界。\n"},
};

std::string text_of(const Sample& sample, std::size_t bytes) {
  std::string text;
  while (text.size() < bytes) text += sample.text;
  return text;
}

void bytes_a_second(benchmark::State& state, std::size_t bytes) {
  state.SetBytesProcessed(static_cast<std::int64_t>(bytes) * state.iterations());
}

void encode(benchmark::State& state, const Tokenizer& tokenizer, const Sample& sample) {
  const std::string text = text_of(sample, static_cast<std::size_t>(state.range(0)));
  std::size_t tokens = 0;
  for (auto _ : state) tokens = tokenizer.encode(text, Specials::literal).size();
  bytes_a_second(state, text.size());
  state.counters["bytes_a_token"] = static_cast<double>(text.size()) / static_cast<double>(tokens);
}

// As an answer goes to the terminal, with a stop string that never comes.
void stream(benchmark::State& state, const Tokenizer& tokenizer, const Sample& sample) {
  const std::string text = text_of(sample, static_cast<std::size_t>(state.range(0)));
  const std::vector<TokenId> ids = tokenizer.encode(text, Specials::literal);
  for (auto _ : state) {
    TextStream stream(tokenizer, {}, {"\n\n\n\n\n"});
    for (const TokenId id : ids) {
      stream.push(id);
      benchmark::DoNotOptimize(stream.take().data());
    }
  }
  bytes_a_second(state, text.size());
}

// Vocabulary and merges from the file to a tokenizer that is ready: part of every load.
void open(benchmark::State& state, const GgufFile& file) {
  for (auto _ : state) benchmark::DoNotOptimize(make_tokenizer(read_vocabulary(file), file.name()));
}

void register_all(const Tokenizer& tokenizer, const GgufFile& file) {
  for (const Sample& sample : kSamples) {
    const auto add = [&](const char* what, auto run) {
      benchmark::RegisterBenchmark(fmt::format("{}/{}", what, sample.name).c_str(),
                                   [&tokenizer, &sample, run](benchmark::State& s) { run(s, tokenizer, sample); })
          ->Arg(1 << 10)
          ->Arg(1 << 16)
          ->Unit(benchmark::kMicrosecond);
    };
    add("encode", encode);
    add("stream", stream);
  }
  benchmark::RegisterBenchmark("open", [&file](benchmark::State& s) { open(s, file); })->Unit(benchmark::kMillisecond);
}

void run(int argc, char** argv) {
  const std::unique_ptr<GgufFile> file = GgufFile::open(take_model_argument(argc, argv));
  const std::unique_ptr<Tokenizer> tokenizer = make_tokenizer(read_vocabulary(*file), file->name());
  benchmark::AddCustomContext("model", file->name());
  register_all(*tokenizer, *file);
  benchmark::RunSpecifiedBenchmarks();
}

}  // namespace
}  // namespace tandem

int main(int argc, char** argv) {
  try {
    tandem::run(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "tokenizer_bench: {}\n", error.what());
    return 1;
  }
}
