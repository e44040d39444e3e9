// The journal of a sweep: JSON lines that are only ever appended to, so that a sweep goes on after Ctrl-C or a kill.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "src/engine/sweep_pair.h"

namespace tandem {

// The first line says what was swept; each further line holds one pair. A line is written whole by one call; a last
// line that a kill tore is dropped when the journal is opened again.
class SweepJournal {
 public:
  enum class Open { fresh, resume };

  // Makes the file, or reads it for `resume` (a missing one starts fresh). Takes it for this process alone. Throws
  // Error(usage) for a fresh start over a file that is there and for one that cannot be written or is in use by another
  // sweep, Error(file) naming file and line for one that is no journal.
  SweepJournal(std::string path, Open how);
  ~SweepJournal();
  SweepJournal(const SweepJournal&) = delete;
  SweepJournal& operator=(const SweepJournal&) = delete;

  // Writes the first line of a new journal, or compares that of an old one. `identity`: everything that gives pairs
  // their meaning beyond their cell and prompt. Throws Error(usage) naming the first entry that differs. Before append.
  void require_identity(const nlohmann::ordered_json& identity);

  // Throws Error(file) when the disk is full.
  void append(const SweepPair& pair);

  const std::vector<SweepPair>& pairs() const { return pairs_; }  // those read and those appended
  int starts() const;                                             // how often pairs were measured before this start

 private:
  void read();
  void write_line(const nlohmann::ordered_json& json);

  std::string path_;
  int file_ = -1;
  nlohmann::ordered_json identity_;  // null: no first line yet
  std::vector<SweepPair> pairs_;
};

}  // namespace tandem
