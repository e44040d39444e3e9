#include "draft/calibration.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tandem {
namespace {

// Upper borders of the bins but the last. Dense at the top, where Laplace's rule puts n-gram matches of 1, 2, 3, 4, 5,
// 6-8, 9-18, 19-48 and more tokens.
constexpr std::array kBorders{0.3, 0.5, 0.7, 0.77, 0.82, 0.845, 0.865, 0.905, 0.955, 0.985};

constexpr double kPriorTests = 4;       // what the prior of a bin weighs
constexpr double kTrustPrior = 4;       // acceptances that speak for a source's confidences before any test
constexpr double kBinMemory = 256;      // tests that a bin remembers
constexpr double kAskedMemory = 64;     // candidates behind the mean acceptance
constexpr double kLuckMemory = 12;      // tests that luck remembers
constexpr double kChance = 1.5;         // standard deviations that count as chance
constexpr double kLuckPrior = 4;        // weight of "as expected"
constexpr double kMostCertain = 0.999;  // no text is surer than that

// A sum that forgets: what lies `memory` terms back counts 1 / e.
void average(double& sum, double value, double memory) { sum += value - sum / memory; }

}  // namespace

int Calibration::bin_of(double confidence) {
  return static_cast<int>(std::upper_bound(kBorders.begin(), kBorders.end(), confidence) - kBorders.begin());
}

double Calibration::middle_of(int bin) {
  const double low = bin == 0 ? 0 : kBorders[bin - 1], high = bin == kBins - 1 ? 1 : kBorders[bin];
  return (low + high) / 2;
}

// The recent ratio of acceptances to those foretold, less what chance explains.
double Calibration::luck(const Table& table) {
  const double chance = kChance * std::sqrt(table.variance);
  const double came = table.came < table.expected ? std::min(table.expected, table.came + chance)
                                                  : std::max(table.expected, table.came - chance);
  return (came + kLuckPrior) / (table.expected + kLuckPrior);
}

// What a confidence is worth in a bin that has seen nothing yet: a draft that is wrong is so in all bins.
double Calibration::trust(const Table& table) {
  return std::min(1.0, (table.accepted + kTrustPrior) / (table.confidences + kTrustPrior));
}

double Calibration::rate(const Table& table, double confidence) {
  const Rate& bin = table.bins[static_cast<std::size_t>(bin_of(confidence))];
  return (bin.accepted + kPriorTests * trust(table) * confidence) / (bin.tested + kPriorTests);
}

double Calibration::acceptance(DraftSource source, bool sibling, double confidence) const {
  const Table& known = table(source, sibling);
  return std::min(rate(known, confidence) * luck(known), kMostCertain);
}

Calibration::Prospects Calibration::prospects(DraftSource source) const {
  const Table& known = table(source, false);
  const double all = std::accumulate(known.asked.begin(), known.asked.end(), 0.0);
  Prospects prospects{};
  for (int bin = 0; bin < kBins; ++bin) {
    prospects[bin] = {known.asked[bin] / all, acceptance(source, false, middle_of(bin))};
  }
  return prospects;
}

void Calibration::ask(DraftSource source, double confidence) {
  Table& known = tables_[static_cast<int>(source)][0];
  for (int bin = 0; bin < kBins; ++bin) average(known.asked[bin], bin == bin_of(confidence), kAskedMemory);
}

void Calibration::observe(DraftSource source, bool sibling, double confidence, bool accepted) {
  Table& known = tables_[static_cast<int>(source)][sibling];
  const double foretold = rate(known, confidence);
  const double came = accepted ? 1 : 0;
  average(known.expected, foretold, kLuckMemory);
  average(known.came, came, kLuckMemory);
  average(known.variance, foretold * (1 - foretold), kLuckMemory / 2);  // weights of a sum's variance are squares
  average(known.confidences, confidence, kBinMemory);
  average(known.accepted, came, kBinMemory);
  Rate& bin = known.bins[static_cast<std::size_t>(bin_of(confidence))];
  average(bin.accepted, came, kBinMemory);
  average(bin.tested, 1, kBinMemory);
}

void Calibration::observe_trial(DraftSource source, double confidence, bool came) {
  Table& known = tables_[static_cast<int>(source)][0];
  average(known.confidences, confidence, kBinMemory);
  average(known.accepted, came ? 1 : 0, kBinMemory);
}

}  // namespace tandem
