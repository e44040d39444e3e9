// What a run tells its user: the JSON of the machine-readable contract and the lines for people.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "src/engine/session.h"

namespace tandem {

inline constexpr const char* kVersion = TANDEM_VERSION;

// One answer as JSON. Numbers that were not measured are null, never NaN.
nlohmann::ordered_json to_json(const GenerationResult& result, const Session& session);

// Sums over several answers: tokens, steps, acceptance, seconds, decode rate.
nlohmann::ordered_json totals_json(const std::vector<GenerationResult>& results, const Session& session);

// Seconds of passes by rows, of the target and of the draft, and where they come from.
nlohmann::ordered_json costs_json(const CostTable& costs);

// Settings, models (with SHA-256), backend and seed of a session.
nlohmann::ordered_json settings_json(const Session& session);

// A few lines for a person, without a final newline.
std::string human_summary(const GenerationResult& result, const Session& session);

// One short line on an answer of a chat, without a final newline.
std::string turn_summary(const GenerationResult& result, const Session& session);

// One line on several answers together, without a final newline.
std::string human_totals(const std::vector<GenerationResult>& results);

// One sentence that explains the speed of a result, e.g. "about 1.62x plain, estimated from T(rows), saved
// 2026-11-30T01:02:03Z (41.2 ms a row); acceptance 0.83 at mean length 2.9; break-even 0.41". Plain decoding and
// answers too short to judge say so.
std::string explanation(const GenerationResult& result, const Session& session);

}  // namespace tandem
