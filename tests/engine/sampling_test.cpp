// Sampled answers through the whole engine: repeatable from the seed, and distributed as the target alone would be.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <functional>
#include <thread>

#include "tests/engine/engine_rig.h"
#include "tests/sample/chi_square.h"

namespace tandem::test {
namespace {

using ::tandem::testing::chi_square;
using ::tandem::testing::ChiSquare;

class Sampled : public ::testing::TestWithParam<std::string> {
 protected:
  Rig& rig() { return Rig::shared(GetParam()); }
};

struct Setting {
  std::string rule, kind;
  int length;
  DraftShape shape = DraftShape::chain;
};
std::vector<Setting> every_setting() {
  std::vector<Setting> settings;
  for (const char* rule : {"rejection", "block", "coupled", "typical"}) {
    for (const std::string& kind : Rig::kinds()) {
      for (int length = 0; length <= 4; ++length) settings.push_back({rule, kind, length});
      settings.push_back({rule, kind, kAuto});
    }
    for (const char* kind : {"model", "hybrid"}) settings.push_back({rule, kind, 3, DraftShape::tree});
  }
  return settings;
}

TEST_P(Sampled, SeedGivesOneTextForEachRuleDrafterAndLength) {  // B31
  const std::vector<TokenId> prompt = random_prompt(30, 9), other = random_prompt(31, 12);
  RigOptions options;
  options.sampling.temperature = 1;
  options.seed = 42;
  const std::vector<TokenId> plain = rig().plain(prompt, 20, options);
  for (const auto& [rule, kind, length, shape] : every_setting()) {
    SCOPED_TRACE(rule + ", " + kind + " of length " + std::to_string(length));
    options.rule = rule;
    options.length = length;
    options.shape = shape;
    Engine first = rig().engine(rig().any_drafter(kind, plain, options), options);
    const std::vector<TokenId> ids = tandem::test::run(first, prompt, 20);
    if (length == 0 || kind == "none" || rule == "coupled") {
      EXPECT_EQ(ids, plain);
    }

    Engine second = rig().engine(rig().any_drafter(kind, plain, options), options);
    tandem::test::run(second, other, 5);
    second.reset();
    EXPECT_EQ(tandem::test::run(second, prompt, 20), ids);  // as a fresh engine
    EXPECT_EQ(tandem::test::run(second, prompt, 20), ids);  // from the cache of the same prompt
  }
}

TEST_P(Sampled, ThreadsDoNotChangeADraw) {
  const std::vector<TokenId> prompt = random_prompt(30, 9);
  RigOptions options;
  options.sampling.temperature = 1;
  for (const char* rule : {"rejection", "block", "coupled", "typical"}) {
    options.rule = rule;
    std::vector<std::vector<TokenId>> texts;
    for (const int threads : {1, 2}) {
      Rig& threaded = Rig::shared(GetParam(), threads);
      Engine engine = threaded.engine(threaded.drafter("model", options), options);
      texts.push_back(tandem::test::run(engine, prompt, 20));
    }
    EXPECT_EQ(texts[0], texts[1]) << rule;
  }
}

// A thread that keeps a core busy changes when passes end, and so what a wall clock would have decided.
TEST_P(Sampled, OtherLoadDoesNotChangeADraw) {
  const std::vector<TokenId> prompt = random_prompt(30, 9);
  RigOptions options;
  options.sampling.temperature = 1;
  Rig& threaded = Rig::shared(GetParam(), 2);
  for (const char* rule : {"rejection", "block", "coupled", "typical"}) {
    options.rule = rule;
    const auto answer = [&] {
      Engine engine = threaded.engine(threaded.drafter("model", options), options);
      return tandem::test::run(engine, prompt, 12);
    };
    const std::vector<TokenId> alone = answer();
    std::atomic<bool> done{false};
    std::thread load([&] {
      volatile double value = 1;
      while (!done) value = value * 1.0000001;
    });
    const std::vector<TokenId> beside = answer();
    done = true;
    load.join();
    EXPECT_EQ(beside, alone) << rule;
  }
}

TEST_P(Sampled, AnotherSeedGivesAnotherText) {
  const std::vector<TokenId> prompt = random_prompt(30, 9);
  RigOptions options;
  options.sampling.temperature = 1;
  const std::vector<TokenId> one = rig().plain(prompt, 20, options);
  options.seed = 2;
  EXPECT_NE(rig().plain(prompt, 20, options), one);
}

constexpr int kUsable = 4;  // ids 0..3 alone may be drawn, so that the law of three tokens has 64 cells
constexpr int kCells = kUsable * kUsable * kUsable;
// With 63 degrees of freedom and the limit at 1 - 1e-6, a law p' with kSeeds * sum (p' - p)^2 / p > 125 is found with a
// probability above 0.99 (normal approximation of the noncentral chi-square): at 4000 seeds, cells wrong by 18 % (root
// mean square). The mutants below are wrong by more.
constexpr int kSeeds = 4000;

RigOptions law_options() {
  RigOptions options;
  options.capacity = 16;
  options.sampling.temperature = 1;
  options.mask = TokenMask(std::vector<bool>(kUsable, true));
  return options;
}

// Probabilities of the three tokens after the prompt, from forward passes and a softmax of its own.
std::vector<double> exact_law(Rig& rig, const std::vector<TokenId>& prompt) {
  std::vector<double> law(kCells);
  KvCache cache = rig.target().make_cache(16, rig.kv_type());
  const std::function<void(std::span<const TokenId>, double, int, int)> walk =
      [&](std::span<const TokenId> tokens, double reached, int cell, int depth) {
        if (depth == 3) {
          law[cell] = reached;
          return;
        }
        const int base = cache.size();
        const std::vector<float> logits = feed(rig.target(), cache, tokens);
        double total = 0;
        for (int id = 0; id < kUsable; ++id) total += std::exp(double{logits[id]});
        for (TokenId id = 0; id < kUsable; ++id) {
          walk({&id, 1}, reached * std::exp(double{logits[id]}) / total, cell * kUsable + id, depth + 1);
        }
        ASSERT_EQ(cache.truncate(base), base);
      };
  walk(prompt, 1, 0, 0);
  return law;
}

// A prompt after which most cells are likely enough to be counted each for itself.
struct Law {
  std::vector<TokenId> prompt;
  std::vector<double> cells;
};
Law find_law(Rig& rig) {
  std::mt19937_64 random(33);
  for (int attempt = 0; attempt < 1000; ++attempt) {
    Law law{random_tokens(random, 6), {}};
    for (TokenId& token : law.prompt) token %= kUsable;  // n-grams of the prompt are met again
    law.cells = exact_law(rig, law.prompt);
    const auto counted = std::count_if(law.cells.begin(), law.cells.end(), [](double p) { return p * kSeeds >= 5; });
    if (counted >= 48) return law;
  }
  throw std::runtime_error("no prompt with a broad law");
}

using MakeVerifier = std::function<std::unique_ptr<Verifier>()>;
MakeVerifier make(const std::string& rule) {
  return [rule] { return make_verifier(rule); };
}

// How often each triple of first tokens came, over kSeeds seeds. Blocks may run past the third token.
std::vector<double> histogram(Rig& rig, const std::vector<TokenId>& prompt, const std::string& kind, int length,
                              const MakeVerifier& verifier, DraftShape shape = DraftShape::chain) {
  std::vector<double> counts(kCells);
  std::vector<TokenId> usable(kUsable);
  std::iota(usable.begin(), usable.end(), 0);
  for (int seed = 0; seed < kSeeds; ++seed) {
    RigOptions options = law_options();
    options.length = length;
    options.max_nodes = 10;
    options.shape = shape;
    options.seed = static_cast<std::uint64_t>(seed);
    std::unique_ptr<Verifier> rule = verifier();
    if (rule->draft_draw() == DraftDraw::shared_noise) options.rule = rule->name();
    // The trees must not depend on the noise that decides about them: their seed is another.
    std::unique_ptr<Drafter> drafter = kind == "random-tree"
                                           ? std::make_unique<RandomTreeDrafter>(1000003u + seed, usable)
                                           : rig.drafter(kind, options);
    Engine engine = rig.engine(std::move(drafter), options, std::move(rule));
    begin(engine, prompt);
    while (engine.context().size() < static_cast<int>(prompt.size()) + 3) engine.step(engine.room());
    const std::span<const TokenId> drawn = engine.context().tokens().subspan(prompt.size(), 3);
    ++counts[(drawn[0] * kUsable + drawn[1]) * kUsable + drawn[2]];
  }
  return counts;
}

TEST_P(Sampled, FirstThreeTokensFollowTheTargetsLaw) {
  const Law law = find_law(rig());
  std::vector<Setting> settings{{"rejection", "model", 3}, {"rejection", "random-tree", 3}};
  if (GetParam() != "reference") {
    settings.insert(settings.end(), {{"rejection", "none", 0},
                                     {"rejection", "model", 1},
                                     {"rejection", "ngram", 2},
                                     {"block", "model", 3},
                                     {"block", "random-tree", 3},
                                     {"rejection", "retokenize-self", 3},
                                     {"block", "retokenize-self", 3},
                                     {"coupled", "model", 3},
                                     {"rejection", "model", 2, DraftShape::tree},
                                     {"rejection", "hybrid", 2, DraftShape::tree},
                                     {"block", "hybrid", 2, DraftShape::tree},
                                     {"coupled", "model", 2, DraftShape::tree}});
  }
  for (const auto& [rule, kind, length, shape] : settings) {
    const std::vector<double> counts = histogram(rig(), law.prompt, kind, length, make(rule), shape);
    const ChiSquare result = chi_square(counts, law.cells);
    EXPECT_TRUE(result.fits()) << rule << ", " << kind << " of length " << length
                               << (shape == DraftShape::tree ? " (tree): " : ": ") << result.statistic << " of "
                               << result.limit;
  }
}

// Two of the mistakes that a chain's acceptance can hold.
class MutantVerifier final : public Verifier {
 public:
  enum class Mistake { accepts_all, forgets_the_residual };
  explicit MutantVerifier(Mistake mistake) : mistake_(mistake) {}

  Verdict verify(const TokenTree& tree, const Logits& logits, Sampler& sampler, Context& context) override {
    Verdict verdict;
    const std::uint32_t start = context.position();
    for (int node = 0;;) {
      verdict.extend(node);
      sampler.distribution(logits.row(node), context, p_);
      const int child = tree.next_child(node, node);
      if (child < 0) break;
      verdict.tested |= std::uint64_t{1} << child;
      const TokenId token = tree.token(child);
      const double ratio = p_[token] / (*tree.proposal(node))[token];
      if (mistake_ != Mistake::accepts_all && sampler.uniform(start, child, DrawPurpose::accept) >= ratio) break;
      context.push(token);
      node = child;
    }
    verdict.next = tree.size() == 1 ? sampler.draw_with_noise(p_, start)
                                    : sampler.draw(p_, start, verdict.path().back(), DrawPurpose::correction);
    context.push(verdict.next);
    return verdict;
  }
  std::string_view name() const override { return "mutant"; }
  bool lossless() const override { return false; }

 private:
  Mistake mistake_;
  Distribution p_;
};

TEST(SampledLaw, MistakenRulesAreFound) {
  Rig& rig = Rig::shared("cpu");
  const Law law = find_law(rig);
  for (const auto mistake : {MutantVerifier::Mistake::accepts_all, MutantVerifier::Mistake::forgets_the_residual}) {
    const std::vector<double> counts =
        histogram(rig, law.prompt, "model", 3, [mistake] { return std::make_unique<MutantVerifier>(mistake); });
    EXPECT_FALSE(chi_square(counts, law.cells).fits()) << static_cast<int>(mistake);
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, Sampled, ::testing::ValuesIn(backends()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace tandem::test
