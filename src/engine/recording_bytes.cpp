#include "src/engine/recording_bytes.h"

#include <algorithm>
#include <cmath>

namespace tandem {
namespace {

void write_row(RecordingWriter& out, const RecordedRow& row) {
  out.list(row.entries);
  out.number(row.rest);
}

RecordedRow read_row(RecordingReader& in) {
  RecordedRow row;
  row.entries = in.list<RecordedRow::Entry>("entries of a row");
  row.rest = in.number<float>("rest of a row");
  return row;
}

void write_rows(RecordingWriter& out, const std::vector<RecordedRow>& rows) {
  out.number<std::uint64_t>(rows.size());
  for (const RecordedRow& row : rows) write_row(out, row);
}

std::vector<RecordedRow> read_rows(RecordingReader& in, std::string_view field) {
  constexpr std::uint64_t kLeastBytes = sizeof(std::uint64_t) + sizeof(float);
  std::vector<RecordedRow> rows(in.count(field, kLeastBytes));
  for (RecordedRow& row : rows) row = read_row(in);
  return rows;
}

void check_row(const RecordingReader& in, const RecordedRow& row, int vocabulary) {
  TokenId before = -1;
  for (const RecordedRow::Entry& entry : row.entries) {
    if (entry.token <= before || entry.token >= vocabulary) {
      in.refuse("a row: expected ascending tokens below {}, got {} after {}", vocabulary, entry.token, before);
    }
    if (std::isnan(entry.value)) in.refuse("a row: expected numbers, got NaN for token {}", entry.token);
    before = entry.token;
  }
}

void check_tokens(const RecordingReader& in, const std::vector<TokenId>& tokens, int vocabulary) {
  for (const TokenId token : tokens) {
    if (token < 0 || token >= vocabulary) in.refuse("tokens: expected 0..{}, got {}", vocabulary - 1, token);
  }
}

void check(const RecordingReader& in, const RecordedAnswer& a, const RecordingSettings& settings) {
  check_tokens(in, a.tokens, settings.vocabulary);
  const auto places = static_cast<std::int64_t>(a.tokens.size()) - a.prompt;
  if (a.prompt < 1 || a.generated < 1 || places < a.generated || a.max_tokens < a.generated ||
      std::cmp_greater(a.tokens.size(), settings.context)) {
    in.refuse("{} tokens: expected a prompt and an answer in a context of {}, got {} and {} of at most {}",
              a.tokens.size(), settings.context, a.prompt, a.generated, a.max_tokens);
  }
  const std::size_t drafted = settings.has_draft() ? static_cast<std::size_t>(places) : 0;
  if (std::cmp_not_equal(a.target.size(), places) || a.draft.size() != drafted || a.branches.size() != drafted) {
    in.refuse("expected {} rows of the target and {} of the draft, got {}, {} and {} branches", places, drafted,
              a.target.size(), a.draft.size(), a.branches.size());
  }
  for (const RecordedRow& row : a.target) check_row(in, row, settings.vocabulary);
  for (const RecordedRow& row : a.draft) check_row(in, row, settings.vocabulary);
  for (const RecordedBranch& branch : a.branches) {
    check_tokens(in, branch.tokens, settings.vocabulary);
    if (branch.tokens.size() != branch.rows.size()) {
      in.refuse("a branch: expected as many rows as tokens, got {} and {}", branch.rows.size(), branch.tokens.size());
    }
    for (const RecordedRow& row : branch.rows) check_row(in, row, settings.vocabulary);
  }
  if (a.times.target_steps.empty()) in.refuse("expected the seconds of at least one step, got none");
}

}  // namespace

void write_answer(RecordingWriter& out, const RecordedAnswer& a) {
  out.text(a.id);
  out.text(a.task);
  out.text(a.stop_reason);
  out.list(a.tokens);
  out.number(a.prompt);
  out.number(a.generated);
  out.number(a.max_tokens);
  write_rows(out, a.target);
  write_rows(out, a.draft);
  out.number<std::uint64_t>(a.branches.size());
  for (const RecordedBranch& branch : a.branches) {
    out.list(branch.tokens);
    write_rows(out, branch.rows);
  }
  out.list(a.times.target_steps);
  out.list(a.times.draft_steps);
  out.list(a.times.target_passes);
  out.list(a.times.draft_passes);
  out.number(a.times.draft_prompt);
  out.number(a.times.sample_a_step);
  out.number(a.times.other_a_step);
}

RecordedAnswer read_answer(RecordingReader& in, const RecordingSettings& settings) {
  RecordedAnswer a;
  a.id = in.text("id");
  a.task = in.text("task");
  a.stop_reason = in.text("stop reason");
  a.tokens = in.list<TokenId>("tokens");
  a.prompt = in.number<int>("prompt length");
  a.generated = in.number<int>("answer length");
  a.max_tokens = in.number<int>("max_tokens");
  a.target = read_rows(in, "rows of the target");
  a.draft = read_rows(in, "rows of the draft");
  a.branches.resize(in.count("branches", 2 * sizeof(std::uint64_t)));
  for (RecordedBranch& branch : a.branches) {
    branch.tokens = in.list<TokenId>("tokens of a branch");
    branch.rows = read_rows(in, "rows of a branch");
  }
  a.times.target_steps = in.list<float>("seconds of the target");
  a.times.draft_steps = in.list<float>("seconds of the draft");
  a.times.target_passes = in.list<RecordedPass>("passes of the target");
  a.times.draft_passes = in.list<RecordedPass>("passes of the draft");
  a.times.draft_prompt = in.number<double>("seconds of the prompt");
  a.times.sample_a_step = in.number<double>("seconds of sampling");
  a.times.other_a_step = in.number<double>("other seconds");
  check(in, a, settings);
  return a;
}

}  // namespace tandem
