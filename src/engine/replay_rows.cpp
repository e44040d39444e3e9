#include "src/engine/replay_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tandem {
namespace {

using Entry = RecordedRow::Entry;
constexpr float kNever = -std::numeric_limits<float>::infinity();

template <typename Visit>
void each_row(RecordedAnswer& answer, Visit&& visit) {
  for (RecordedRow& row : answer.target) visit(row);
  for (RecordedRow& row : answer.draft) visit(row);
  for (RecordedBranch& branch : answer.branches) {
    for (RecordedRow& row : branch.rows) visit(row);
  }
}

}  // namespace

ReplayVocabulary::ReplayVocabulary(Recording& recording) {
  for (RecordedAnswer& answer : recording.answers) {
    ids_.insert(ids_.end(), answer.tokens.begin(), answer.tokens.end());
    for (const RecordedBranch& branch : answer.branches) {
      ids_.insert(ids_.end(), branch.tokens.begin(), branch.tokens.end());
    }
    each_row(answer, [&](const RecordedRow& row) {
      for (const Entry& entry : row.entries) ids_.push_back(entry.token);
    });
    std::ranges::sort(ids_);
    ids_.erase(std::ranges::unique(ids_).begin(), ids_.end());
  }
  for (RecordedAnswer& answer : recording.answers) {
    for (TokenId& token : answer.tokens) renumber(token);
    for (RecordedBranch& branch : answer.branches) {
      for (TokenId& token : branch.tokens) renumber(token);
    }
    each_row(answer, [&](RecordedRow& row) { renumber(row); });
  }
}

void ReplayVocabulary::renumber(RecordedRow& row) const {
  for (Entry& entry : row.entries) renumber(entry.token);
}

std::optional<TokenId> ReplayVocabulary::number(TokenId id) const {
  const auto at = std::ranges::lower_bound(ids_, id);
  if (at == ids_.end() || *at != id) return std::nullopt;
  return static_cast<TokenId>(at - ids_.begin());
}

TokenMask ReplayVocabulary::mask() const {
  return TokenMask(std::vector<bool>(static_cast<std::size_t>(no_token()) + 1, true));
}

ReplayRows::ReplayRows(const RecordedAnswer& answer, const RecordingSettings& settings,
                       const ReplayVocabulary& vocabulary, const std::string& rule, const Head* head, Noise draws)
    : answer_(answer),
      settings_(settings),
      vocabulary_(vocabulary),
      hot_(settings.sampling.temperature > 0),
      block_(rule == "block"),
      coupled_(rule == "coupled"),
      head_(head),
      draws_(draws) {
  if (head == nullptr) return;
  for (std::size_t i = 0; i < answer.tokens.size(); ++i) {
    first_seen_.try_emplace(answer.tokens[i], static_cast<int>(i));
  }
}

void ReplayRows::begin_step(int committed) {
  committed_ = next_ = committed;
  weight_ = 1;
  drawn_.clear();
}

// What lies beyond the recording is taken to be like its last row.
const RecordedRow& ReplayRows::at(const std::vector<RecordedRow>& rows, int length) const {
  const int last = static_cast<int>(rows.size()) - 1;
  return rows[static_cast<std::size_t>(std::clamp(length - answer_.prompt, 0, last))];
}

// A trimmed head has a row for the tokens of the text too, as far as it goes when the step begins.
bool ReplayRows::kept(TokenId token) const {
  if (head_ == nullptr || head_->kept[static_cast<std::size_t>(token)]) return true;
  const auto seen = first_seen_.find(token);
  return seen != first_seen_.end() && seen->second < committed_;
}

void ReplayRows::write(const RecordedRow& row, bool trimmed, std::span<float> out) const {
  std::ranges::fill(out, kNever);
  bool any = false;
  for (const Entry& entry : row.entries) {
    if (trimmed && !kept(entry.token)) continue;
    out[static_cast<std::size_t>(entry.token)] = entry.value;
    any = true;
  }
  out.back() = row.rest;
  if (!any) out[static_cast<std::size_t>(vocabulary_.no_token())] = std::isinf(row.rest) ? 0 : row.rest;
}

// Makes these the best of a row, in this order. The row's values stay what they are, but for which token has which.
void ReplayRows::put_first(std::span<const TokenId> tokens, std::span<float> out) {
  ranked_.clear();
  const auto chosen = [&](TokenId token) { return std::ranges::find(tokens, token) != tokens.end(); };
  const std::span<float> drawable = out.first(out.size() - 1);
  for (std::size_t i = 0; i < drawable.size(); ++i) {
    if (drawable[i] != kNever) ranked_.emplace_back(drawable[i], static_cast<TokenId>(i));
  }
  std::ranges::stable_sort(ranked_, std::greater{}, &std::pair<float, TokenId>::first);
  for (const auto& [value, token] : ranked_) drawable[static_cast<std::size_t>(token)] = kNever;
  std::size_t next = 0;
  for (const TokenId token : tokens) {
    // Of what no row lists there may be no value left: it is no less likely then than the least of them.
    drawable[static_cast<std::size_t>(token)] = ranked_[std::min(next++, ranked_.size() - 1)].first;
  }
  for (const auto& [value, token] : ranked_) {
    if (chosen(token)) continue;
    if (next == ranked_.size()) break;
    drawable[static_cast<std::size_t>(token)] = ranked_[next++].first;
  }
}

void ReplayRows::write_target(const ReplayPlace& place, std::span<float> out) {
  write(at(answer_.target, place.length), false, out);
  const auto next = static_cast<std::size_t>(place.length);
  if (hot_ && place.depth == 0 && next < answer_.tokens.size()) put_first({&answer_.tokens[next], 1}, out);
}

void ReplayRows::write_draft(const ReplayPlace& place, std::span<float> out) {
  if (place.depth > 0) {
    const RecordedBranch& branch = answer_.branches[static_cast<std::size_t>(place.anchor)];
    write(branch.rows[static_cast<std::size_t>(place.depth - 1)], true, out);
    return;
  }
  write(at(answer_.draft, place.length), true, out);
  const bool on_text = place.depth == 0 && std::cmp_less(place.length, answer_.tokens.size());
  if (hot_ && on_text) put_first(drawn(place.length), out);
}

const std::vector<TokenId>& ReplayRows::drawn(int length) {
  const auto [at, is_new] = drawn_.try_emplace(length);
  if (is_new) at->second = coupled_ ? drawn_with_noise(length) : drawn_given_text(length);
  return at->second;
}

std::vector<TokenId> ReplayRows::drawn_with_noise(int length) const {
  std::vector<std::pair<double, TokenId>> values;
  for (const Entry& entry : at(answer_.draft, length).entries) {
    if (!kept(entry.token)) continue;
    const double noise = settings_.noise.gumbel(static_cast<std::uint32_t>(length), vocabulary_.id(entry.token));
    values.emplace_back(entry.value + noise, entry.token);
  }
  if (values.empty()) return {vocabulary_.no_token()};
  std::ranges::stable_sort(values, std::greater{}, &std::pair<double, TokenId>::first);
  std::vector<TokenId> tokens;
  for (const auto& [value, token] : values) tokens.push_back(token);
  tokens.resize(std::min<std::size_t>(tokens.size(), kMostDrawn));
  return tokens;
}

// What rows do not list goes to tokens of which neither model's is the other's, so that it is never accepted.
void ReplayRows::distributions_at(int length) {
  p_.clear();
  q_.clear();
  for (const Entry& entry : at(answer_.target, length).entries) p_.add(entry.token, std::exp(entry.value));
  for (const Entry& entry : at(answer_.draft, length).entries) {
    if (kept(entry.token)) q_.add(entry.token, std::exp(entry.value));
  }
  const double q_rest = std::exp(at(answer_.draft, length).rest), p_rest = std::exp(at(answer_.target, length).rest);
  if (q_rest > 0 || q_.size() == 0) q_.add(vocabulary_.no_token(), q_rest > 0 ? q_rest : 1);
  if (p_rest > 0) p_.add(vocabulary_.no_token() + 1, p_rest);
  p_.normalise();
  q_.normalise();
}

// The weight of the chain before the token at `length`; 1 under other rules than `block`. What lies between was put
// there by no draft model, as if from a one-hot proposal.
double ReplayRows::weight_before(int length) {
  if (!block_) return 1;
  for (; next_ < length; ++next_) {
    distributions_at(next_);
    weight_ = std::min(1.0, weight_ * p_[answer_.tokens[static_cast<std::size_t>(next_)]]);
  }
  return weight_;
}

std::vector<TokenId> ReplayRows::drawn_given_text(int length) {
  const TokenId text = answer_.tokens[static_cast<std::size_t>(length)];
  const double weight = weight_before(length);
  const auto position = static_cast<std::uint32_t>(length);
  distributions_at(length);
  state_.begin(p_, &q_, weight);
  Distribution left = q_;  // what the next child is drawn from
  std::vector<TokenId> tokens;
  while (static_cast<int>(tokens.size()) < kMostDrawn && left.size() > 0) {
    const int child = static_cast<int>(tokens.size());
    const Distribution& p = state_.residual();
    const double output = state_.weight() * p[text];
    if (output <= 0 || draws_.uniform(position, child, DrawPurpose::accept) * output < left[text]) {
      tokens.push_back(text);
      if (child == 0) weight_ = state_.accept_probability(text, ChildKind::sampled);
      break;
    }
    const auto excess = [&](std::size_t i) {
      return left.tokens[i] == text ? 0.0 : std::max(0.0, left.probabilities[i] - state_.weight() * p[left.tokens[i]]);
    };
    double total = 0;
    for (std::size_t i = 0; i < left.size(); ++i) total += excess(i);
    double to_go = total * draws_.uniform(position, child, DrawPurpose::draft);
    TokenId token = -1;
    for (std::size_t i = 0; i < left.size() && to_go >= 0; ++i) {
      if (excess(i) == 0) continue;
      token = left.tokens[i];
      to_go -= excess(i);
    }
    if (token < 0) break;
    tokens.push_back(token);
    state_.reject(token, ChildKind::sampled);
    left.remove(token);
  }
  next_ = length + 1;
  if (tokens.empty()) tokens.push_back(vocabulary_.no_token());
  return tokens;
}

}  // namespace tandem
