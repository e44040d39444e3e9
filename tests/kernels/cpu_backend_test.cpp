// What the CPU backend promises besides its arithmetic.
#include "kernels/cpu/cpu_backend.h"

#include <cstdlib>

#include "kernels/cpu/memory.h"
#include "kernels/registry.h"
#include "src/base/error.h"
#include "tests/kernels/kernel_fixture.h"

namespace tandem::test {
namespace {

// Sets TANDEM_ISA for one scope.
class IsaVariable {
 public:
  explicit IsaVariable(const char* value) { setenv("TANDEM_ISA", value, 1); }
  ~IsaVariable() { unsetenv("TANDEM_ISA"); }
};

TEST(IsaChoice, TheVariableForcesASet) {
  ThreadPool pool(1);
  for (const Isa isa : kAllIsas) {
    const IsaVariable variable(std::string(name_of(isa)).c_str());
    if (machine_has(isa)) {
      EXPECT_EQ(choose_isa(), isa);
      EXPECT_EQ(make_backend("cpu", pool)->name(), "cpu-" + std::string(name_of(isa)));
    } else {
      EXPECT_THROW(choose_isa(), Error);
    }
  }
}

TEST(IsaChoice, WithoutTheVariableTheBestOfTheMachine) {
  unsetenv("TANDEM_ISA");
  const Isa best = choose_isa();
  for (const Isa isa : kAllIsas) EXPECT_TRUE(!machine_has(isa) || isa <= best);
}

TEST(IsaChoice, AnUnknownNameIsAUsageErrorThatNamesTheAllowed) {
  const IsaVariable variable("sse9");
  try {
    choose_isa();
    FAIL() << "expected an error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_NE(std::string(error.what()).find("sse9"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("portable"), std::string::npos);
  }
}

TEST(Registry, UnknownAndMissingBackendsAreConfigErrors) {
  ThreadPool pool(1);
  for (const char* kind : {"tpu", "", "CPU"}) {
    try {
      make_backend(kind, pool);
      FAIL() << "expected an error for " << kind;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::config);
    }
  }
  EXPECT_EQ(make_backend("auto", pool)->threads(), 1);
}

TEST(CpuBackend, RejectsShapesThatCannotBe) {
  ThreadPool pool(1);
  const auto cpu = make_cpu_backend(choose_isa(), pool);
  const std::vector<std::byte> data(144);
  EXPECT_THROW(load(*cpu, Format::q4_k, 1, 128, data), Error);
  EXPECT_THROW(load(*cpu, Format::q4_k, 2, 256, data), Error);
  EXPECT_THROW(load(*cpu, Format::q4_k, 0, 256, {}), Error);
  const auto weight = load(*cpu, Format::q4_k, 1, 256, data);
  std::vector<float> x(512), out(2);
  const Projection wrong_cols{rows_of(out, 1, 1), weight.get(), nullptr},
      wrong_out{rows_of(out, 1, 2), weight.get(), nullptr};
  EXPECT_THROW(cpu->matmul({&wrong_cols, 1}, rows_of(x, 1, 512)), Error);
  EXPECT_THROW(cpu->matmul({&wrong_out, 1}, rows_of(x, 1, 256)), Error);
  const auto lookup = load(*cpu, Format::q4_k, 1, 256, data, WeightUse::lookup);
  const Projection not_packed{rows_of(out, 1, 1), lookup.get(), nullptr};
  EXPECT_THROW(cpu->matmul({&not_packed, 1}, rows_of(x, 1, 256)), Error);
  const std::vector<TokenId> tokens{1};
  std::vector<float> row(256);
  EXPECT_THROW(cpu->embed(rows_of(row, 1, 256), *lookup, tokens), Error);
}

TEST(CpuBackend, DownloadGivesContiguousRows) {
  ThreadPool pool(1);
  const auto cpu = make_cpu_backend(choose_isa(), pool);
  auto values = random_values(4 * 10, 1);
  const Rows all = rows_of(values, 4, 10);
  EXPECT_EQ(cpu->download(all).data(), values.data());
  const auto part = cpu->download(all.columns(2, 3));
  ASSERT_EQ(part.size(), 12u);
  for (int i = 0; i < 12; ++i) EXPECT_EQ(part[i], values[i / 3 * 10 + 2 + i % 3]);
}

TEST(CpuMemory, PiecesDoNotOverlapAndAreZero) {
  cpu::Arena arena;
  std::vector<std::pair<cpu::Piece, std::size_t>> pieces;
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{1000}, std::size_t{40} << 20, std::size_t{70} << 20,
                                  std::size_t{30} << 20, std::size_t{64}}) {
    pieces.emplace_back(arena.take(bytes), bytes);
    auto& [piece, size] = pieces.back();
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(piece.data) % 64, 0u);
    EXPECT_EQ(piece.data[0], 0);
    EXPECT_EQ(piece.data[size - 1], 0);
    piece.data[0] = piece.data[size - 1] = static_cast<std::uint8_t>(pieces.size());
  }
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    EXPECT_EQ(pieces[i].first.data[0], i + 1);
    EXPECT_EQ(pieces[i].first.data[pieces[i].second - 1], i + 1);
  }
}

TEST(CpuMemory, BuffersAreZeroedAndAligned) {
  ThreadPool pool(1);
  const auto cpu = make_cpu_backend(choose_isa(), pool);
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{5} << 20}) {
    const auto buffer = cpu->allocate(bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer->data()) % 64, 0u);
    for (std::size_t i = 0; i < bytes; i += 4096) EXPECT_EQ(buffer->data()[i], std::byte{0});
  }
}

}  // namespace
}  // namespace tandem::test
