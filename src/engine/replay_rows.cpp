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

// Above temperature 0: the probability of a token; 0 where it is not listed.
double probability(const RecordedRow& row, TokenId token) {
  const auto at = std::ranges::lower_bound(row.entries, token, {}, &Entry::token);
  return at != row.entries.end() && at->token == token ? std::exp(at->value) : 0;
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
  next_ = committed;
  weight_ = 1;
  drawn_.clear();
}

// What lies beyond the recording is taken to be like its last row.
const RecordedRow& ReplayRows::at(const std::vector<RecordedRow>& rows, int length) const {
  const int last = static_cast<int>(rows.size()) - 1;
  return rows[static_cast<std::size_t>(std::clamp(length - answer_.prompt, 0, last))];
}

// A trimmed head has a row for the tokens of the text too.
bool ReplayRows::kept(TokenId token, int length) const {
  if (head_ == nullptr || head_->kept[static_cast<std::size_t>(token)]) return true;
  const auto seen = first_seen_.find(token);
  return seen != first_seen_.end() && seen->second < length;
}

void ReplayRows::write(const RecordedRow& row, int length, bool trimmed, std::span<float> out) const {
  std::ranges::fill(out, kNever);
  bool any = false;
  for (const Entry& entry : row.entries) {
    if (trimmed && !kept(entry.token, length)) continue;
    out[static_cast<std::size_t>(entry.token)] = entry.value;
    any = true;
  }
  out.back() = row.rest;
  if (!any) out[static_cast<std::size_t>(vocabulary_.no_token())] = std::isinf(row.rest) ? 0 : row.rest;
}

namespace {

// Makes `token` the best of a row in the place of what was, so that the row's probabilities stay what they are.
void put_first(std::span<float> row, TokenId token) {
  const auto best = std::max_element(row.begin(), row.end() - 1);
  std::swap(*best, row[static_cast<std::size_t>(token)]);
}

}  // namespace

void ReplayRows::write_target(const ReplayPlace& place, std::span<float> out) const {
  write(at(answer_.target, place.length), place.length, false, out);
  const auto next = static_cast<std::size_t>(place.length);
  if (hot_ && place.depth == 0 && next < answer_.tokens.size()) put_first(out, answer_.tokens[next]);
}

void ReplayRows::write_draft(const ReplayPlace& place, std::span<float> out) {
  if (place.depth > 0) {
    const RecordedBranch& branch = answer_.branches[static_cast<std::size_t>(place.anchor)];
    write(branch.rows[static_cast<std::size_t>(place.depth - 1)], answer_.prompt + place.anchor, true, out);
    return;
  }
  write(at(answer_.draft, place.length), place.length, true, out);
  const bool on_text = place.depth == 0 && std::cmp_less(place.length, answer_.tokens.size());
  if (hot_ && on_text) put_first(out, drawn(place.length));
}

TokenId ReplayRows::drawn(int length) {
  const auto known = drawn_.find(length);
  if (known != drawn_.end()) return known->second;
  const RecordedRow& p = at(answer_.target, length);
  const RecordedRow& q = at(answer_.draft, length);
  const TokenId token = coupled_ ? drawn_with_noise(q, length) : drawn_given_text(p, q, length, weight_before(length));
  drawn_.emplace(length, token);
  return token;
}

TokenId ReplayRows::drawn_with_noise(const RecordedRow& q, int length) const {
  TokenId best = vocabulary_.no_token();
  double most = -std::numeric_limits<double>::infinity();
  for (const Entry& entry : q.entries) {
    if (!kept(entry.token, length)) continue;
    const double value =
        entry.value + settings_.noise.gumbel(static_cast<std::uint32_t>(length), vocabulary_.id(entry.token));
    if (value > most) {
      most = value;
      best = entry.token;
    }
  }
  return best;
}

// The weight of block verification's chain before the token at `length`; 1 under other rules. What lies between was
// put there by no draft model, as if from a one-hot proposal.
double ReplayRows::weight_before(int length) {
  if (!block_) return 1;
  for (; next_ < length; ++next_) {
    weight_ = std::min(
        1.0, weight_ * probability(at(answer_.target, next_), answer_.tokens[static_cast<std::size_t>(next_)]));
  }
  const double before = weight_;
  const TokenId token = answer_.tokens[static_cast<std::size_t>(length)];
  const RecordedRow& draft = at(answer_.draft, length);
  const double p = probability(at(answer_.target, length), token);
  const double q = kept(token, length) ? probability(draft, token) / kept_mass(draft, length) : 0;
  weight_ = q > 0 ? std::min(1.0, weight_ * p / q) : 1;
  next_ = length + 1;
  return before;
}

// Probability of the tokens that the head has, of which those that the row does not list are taken to be.
double ReplayRows::kept_mass(const RecordedRow& q, int length) const {
  double mass = std::exp(q.rest);
  for (const Entry& entry : q.entries) mass += kept(entry.token, length) ? std::exp(entry.value) : 0;
  return mass;
}

TokenId ReplayRows::drawn_given_text(const RecordedRow& p, const RecordedRow& q, int length, double weight) const {
  const TokenId text = answer_.tokens[static_cast<std::size_t>(length)];
  const double mass = kept_mass(q, length);
  const double proposed = kept(text, length) ? probability(q, text) / mass : 0;
  const double accepted = proposed / (weight * probability(p, text));
  const auto position = static_cast<std::uint32_t>(length);
  if (draws_.uniform(position, 0, DrawPurpose::accept) < accepted) return text;
  const auto excess = [&](const Entry& entry) {
    if (entry.token == text || !kept(entry.token, length)) return 0.0;
    return std::max(0.0, std::exp(entry.value) / mass - weight * probability(p, entry.token));
  };
  double total = 0;
  for (const Entry& entry : q.entries) total += excess(entry);
  double left = total * draws_.uniform(position, 0, DrawPurpose::draft);
  TokenId drawn = vocabulary_.no_token();
  for (const Entry& entry : q.entries) {
    const double share = excess(entry);
    if (share == 0) continue;
    drawn = entry.token;
    if ((left -= share) < 0) break;
  }
  return drawn;
}

}  // namespace tandem
