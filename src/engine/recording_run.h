// Makes recordings: plain decoding with the draft looking over its shoulder.
#pragma once
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "src/engine/recording.h"
#include "src/engine/session.h"

namespace tandem {

class DraftRecorder;

class Recorder {
 public:
  // The session outlives this and has a draft model if model drafts shall be replayed; its costs are known (automatic
  // length). `longest`: drafted tokens behind each place, at least 1. Throws Error(config) for drafts and constraints
  // that do not replay.
  Recorder(const Session& session, int longest);
  ~Recorder();

  // What all answers share. Hashing the models may take seconds the first time.
  Recording empty() const;

  // Answers this prompt plainly, forgetting the one before; nullopt when `rules` cancelled it. Throws as Generation.
  std::optional<RecordedAnswer> answer(const std::string& id, const std::string& task, std::span<const TokenId> prompt,
                                       const StopRules& rules);

 private:
  void note(RecordedAnswer& answer);
  void go_beyond(RecordedAnswer& answer);
  void time_passes(RecordedAnswer& answer);

  const Session& session_;
  int longest_;
  Engine engine_;
  Sampler sampler_;
  Context before_;  // the tokens before the one that was committed last
  Distribution distribution_;
  std::unique_ptr<DraftRecorder> draft_;  // null without a draft model
};

}  // namespace tandem
