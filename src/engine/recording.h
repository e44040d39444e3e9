// What replay needs of a run: plain decoding's text, both models' best tokens along it, and what passes took.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "draft/cost_model.h"
#include "src/sample/sampler.h"

namespace tandem {

inline constexpr int kRecordedTokens = 64;  // of a row, besides those that the text or the sampler chose

// One row of a model, after some tokens. At temperature 0 the values are its logits; above, the natural logarithms of
// its probabilities after the whole sampler chain.
struct RecordedRow {
  struct Entry {
    TokenId token;
    float value;
  };
  std::vector<Entry> entries;  // ascending in token: the best, and those that must not be missing
  float rest = 0;              // log of the sum of exponentials of all other values; -inf: there are none
};

// Where the draft's best token is not the text's: what it would go on with, greedily.
struct RecordedBranch {
  std::vector<TokenId> tokens;
  std::vector<RecordedRow> rows;  // of the draft, after the text and tokens[0..i]
};

// A pass of `rows` rows, and one of a single row just before.
struct RecordedPass {
  int rows;
  float seconds, single_seconds;
};

// Seconds. Each step's are those of one pass over one row.
struct RecordedTimes {
  std::vector<float> target_steps, draft_steps;  // the draft's with its distribution and confidence
  std::vector<RecordedPass> target_passes, draft_passes;
  double draft_prompt = 0;                     // the draft's reading of the prompt
  double sample_a_step = 0, other_a_step = 0;  // of plain decoding
};

// One answer of plain decoding. Row i of either model is that after prompt + i tokens, so that it is about
// tokens[prompt + i]. The draft has no row 0: it drafts behind the first token.
struct RecordedAnswer {
  std::string id, task, stop_reason;
  std::vector<TokenId> tokens;  // prompt, answer, and what plain decoding would go on with behind a stop
  int prompt = 0, generated = 0;
  int max_tokens = 0;
  std::vector<RecordedRow> target, draft;  // draft: empty without a draft model
  std::vector<RecordedBranch> branches;    // one a row of the draft
  RecordedTimes times;
};

// What all answers share.
struct RecordingSettings {
  SamplingOptions sampling;
  Noise noise;
  std::string rule, kind;
  int longest = 0;  // drafted tokens behind each place
  int context = 0, draft_context = 0, prefill_chunk = 0, max_nodes = 0;
  int ngram_min_match = 0, ngram_max_match = 0;
  double min_probability = 0;
  bool refresh_costs = true;  // automatic lengths follow the clock
  int vocabulary = 0, draft_head_rows = 0;
  double draft_bytes = 0, draft_bytes_a_head_row = 0;  // of a pass
  std::vector<TokenId> end_ids;
  std::vector<TokenRun> usable;                       // ids that may be drafted
  std::vector<RowSeconds> target_costs, draft_costs;  // that automatic lengths begin with

  bool has_draft() const { return draft_context > 0; }
};

struct Recording {
  RecordingSettings settings;
  nlohmann::ordered_json run;  // models with their hashes, backend and effective YAML, as reports name them
  std::vector<RecordedAnswer> answers;
};

// Replaces the file at `path` whole or not at all; only the user can read it. Throws Error(file).
void write_recording(const Recording& recording, const std::string& path);

// Throws Error(file) naming the file and what is wrong with it: no recording, one of another version, cut, changed, or
// with parts that do not fit together.
Recording read_recording(const std::string& path);
// The same of a file's content, which `path` names in messages.
Recording parse_recording(std::string_view content, const std::string& path);

}  // namespace tandem
