#include "src/engine/sweep_figures.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <tuple>

namespace tandem {
namespace {

constexpr std::ptrdiff_t kNeighbours = 4;  // before, and as many after
constexpr std::size_t kFewest = 3;         // values whose median says what is usual

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

bool off(double value, const std::vector<double>& usual) {
  if (usual.size() < kFewest) return false;
  const double middle = median(usual);
  return std::abs(value - middle) > kNoisyShare * middle;
}

void mark_plain(std::span<const SweepPair> pairs, std::vector<bool>& noisy) {
  std::map<int, std::vector<std::size_t>> starts;  // pairs with a figure, in order
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    if (pairs[i].speedup()) starts[pairs[i].start].push_back(i);
  }
  for (const auto& [start, members] : starts) {
    const auto count = static_cast<std::ptrdiff_t>(members.size());
    for (std::ptrdiff_t i = 0; i < count; ++i) {
      std::vector<double> usual;
      for (std::ptrdiff_t j = std::max<std::ptrdiff_t>(0, i - kNeighbours); j < std::min(count, i + kNeighbours + 1);
           ++j) {
        if (j != i) usual.push_back(*pairs[members[static_cast<std::size_t>(j)]].plain.seconds_a_token());
      }
      const std::size_t pair = members[static_cast<std::size_t>(i)];
      if (off(*pairs[pair].plain.seconds_a_token(), usual)) noisy[pair] = true;
    }
  }
}

void mark_repeats(std::span<const SweepPair> pairs, std::vector<bool>& noisy) {
  std::map<std::tuple<std::string, std::string, std::int64_t, std::int64_t>, std::vector<std::size_t>> same_work;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const SweepPair& pair = pairs[i];
    if (pair.speedup()) same_work[{pair.cell, pair.prompt, pair.drafted.tokens, pair.drafted.steps}].push_back(i);
  }
  for (const auto& [work, members] : same_work) {
    std::vector<double> usual;
    for (const std::size_t i : members) usual.push_back(*pairs[i].speedup());
    for (const std::size_t i : members) {
      if (off(*pairs[i].speedup(), usual)) noisy[i] = true;
    }
  }
}

double mean(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

// At this share of the sorted values, between two of them in proportion.
double percentile(std::span<const double> sorted, double share) {
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

// The last pair of each cell, prompt and repeat: a pair that failed was tried again.
std::vector<std::size_t> latest(std::span<const SweepPair> pairs) {
  std::map<std::tuple<std::string, std::string, int>, std::size_t> last;
  for (std::size_t i = 0; i < pairs.size(); ++i) last[{pairs[i].cell, pairs[i].prompt, pairs[i].repeat}] = i;
  std::vector<std::size_t> order;
  for (const auto& [key, index] : last) order.push_back(index);
  std::ranges::sort(order);
  return order;
}

template <typename Item>
std::map<std::string, std::size_t> indices(std::span<const Item> items) {
  std::map<std::string, std::size_t> places;
  for (std::size_t i = 0; i < items.size(); ++i) places[items[i].key()] = i;
  return places;
}

// The pairs of one cell with a speed-up, by prompt.
struct Timed {
  const SweepPair* pair;
  bool noisy;
};

void add_speedups(CellFigures& figures, const std::map<std::size_t, std::vector<Timed>>& by_prompt,
                  std::uint64_t seed) {
  std::vector<std::vector<double>> counted, all;
  for (const auto& [prompt, pairs] : by_prompt) {
    PromptFigures of{prompt, 1, static_cast<int>(pairs.size()), 0};
    of.noisy = static_cast<int>(std::ranges::count_if(pairs, &Timed::noisy));
    const bool keep_all = of.noisy == of.pairs;
    counted.emplace_back();
    all.emplace_back();
    double sum = 0;
    for (const Timed& timed : pairs) {
      all.back().push_back(*timed.pair->speedup());
      if (timed.noisy && !keep_all) continue;
      counted.back().push_back(all.back().back());
      sum += std::log(all.back().back());
      figures.plain.add(timed.pair->plain);
      figures.drafted.add(timed.pair->drafted);
    }
    of.speedup = std::exp(sum / static_cast<double>(counted.back().size()));
    figures.noisy += of.noisy;
    figures.prompts.push_back(of);
  }
  if (counted.empty()) return;
  figures.speedup = speed_up(counted, seed);
  figures.speedup_of_all = speed_up(all, seed).value;
}

}  // namespace

std::vector<bool> noisy_pairs(std::span<const SweepPair> pairs) {
  std::vector<bool> noisy(pairs.size());
  mark_plain(pairs, noisy);
  mark_repeats(pairs, noisy);
  return noisy;
}

SpeedUp speed_up(const std::vector<std::vector<double>>& ratios, std::uint64_t seed) {
  std::vector<std::vector<double>> logs = ratios;
  std::vector<double> means;
  std::size_t count = 0;
  for (std::vector<double>& prompt : logs) {
    for (double& ratio : prompt) ratio = std::log(ratio);
    means.push_back(mean(prompt));
    count += prompt.size();
  }
  SpeedUp speedup{std::exp(mean(means)), {}, {}};
  if (count < 2) return speedup;
  std::mt19937_64 random(seed);
  std::vector<double> samples(kBootstrapSamples);
  for (double& sample : samples) {
    sample = 0;
    for (std::size_t i = 0; i < logs.size(); ++i) {
      const std::vector<double>& prompt = logs[random() % logs.size()];
      double sum = 0;
      for (std::size_t k = 0; k < prompt.size(); ++k) sum += prompt[random() % prompt.size()];
      sample += sum / static_cast<double>(prompt.size());
    }
    sample = std::exp(sample / static_cast<double>(logs.size()));
  }
  std::ranges::sort(samples);
  speedup.low = percentile(samples, (1 - kConfidence) / 2);
  speedup.high = percentile(samples, (1 + kConfidence) / 2);
  return speedup;
}

const PromptFigures* CellFigures::worst() const {
  const auto least = std::ranges::min_element(prompts, {}, &PromptFigures::speedup);
  return least == prompts.end() ? nullptr : &*least;
}

std::vector<CellFigures> cell_figures(std::span<const SweepCell> cells, std::span<const SweepPrompt> prompts,
                                      std::span<const SweepPair> pairs, std::uint64_t seed) {
  const auto cell_of = indices(cells);
  const auto prompt_of = indices(prompts);
  const std::vector<bool> noisy = noisy_pairs(pairs);
  std::vector<CellFigures> all(cells.size());
  std::vector<std::map<std::size_t, std::vector<Timed>>> timed(cells.size());
  for (std::size_t i = 0; i < cells.size(); ++i) all[i].cell = i;
  for (const std::size_t i : latest(pairs)) {
    const SweepPair& pair = pairs[i];
    const auto cell = cell_of.find(pair.cell);
    const auto prompt = prompt_of.find(pair.prompt);
    if (cell == cell_of.end() || prompt == prompt_of.end()) continue;
    CellFigures& figures = all[cell->second];
    if (pair.failed()) {
      figures.failed.push_back(&pair);
      continue;
    }
    ++figures.pairs;
    if (pair.differs_at) figures.differing.push_back(&pair);
    if (pair.speedup()) {
      timed[cell->second][prompt->second].push_back({&pair, noisy[i]});
    } else {
      ++figures.short_answers;
    }
  }
  for (std::size_t i = 0; i < cells.size(); ++i) add_speedups(all[i], timed[i], seed);
  return all;
}

std::vector<Winner> winners(std::span<const SweepCell> cells, std::span<const CellFigures> figures) {
  std::vector<Winner> found;
  for (const SweepCell& cell : cells) {
    const double temperature = cell.config.sampling.temperature;
    if (std::ranges::any_of(found, [&](const Winner& w) { return w.temperature == temperature; })) continue;
    std::vector<const CellFigures*> rivals;
    for (const CellFigures& each : figures) {
      const SweepCell& rival = cells[each.cell];
      if (rival.config.sampling.temperature == temperature && !rival.plain() && each.speedup &&
          each.differing.empty()) {
        rivals.push_back(&each);
      }
    }
    std::ranges::stable_sort(rivals, std::greater{}, [](const CellFigures* each) { return each->speedup->value; });
    Winner winner{temperature, nullptr, {}};
    if (!rivals.empty() && rivals.front()->speedup->value > 1) {
      winner.figures = rivals.front();
      for (const CellFigures* each : std::span(rivals).subspan(1)) {
        if (each->speedup->high.value_or(0) >= winner.figures->speedup->value) winner.as_good.push_back(each);
      }
    }
    found.push_back(std::move(winner));
  }
  return found;
}

}  // namespace tandem
