// Lattices: the paths that a recogniser found for each utterance, with their costs, in Kaldi's text
// form.
#ifndef KINGLET_TOOLS_LATTICE_H_
#define KINGLET_TOOLS_LATTICE_H_

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "kinglet/status.h"
#include "tools/document_reader.h"

namespace kinglet {

// Kaldi's two costs, negative log-probabilities: `graph` is of the old language model, of
// pronunciations and transitions, `acoustic` of the sound.
struct LatticeCost {
  double graph = 0, acoustic = 0;
};

struct LatticeArc {
  static constexpr uint32_t kNoWord = UINT32_MAX;
  uint32_t to = 0, word = kNoWord;  // a state; an index of `words`
  LatticeCost cost;
};

struct Lattice {
  std::string utterance;
  std::vector<std::string> words;                // different ones
  std::vector<std::vector<LatticeArc>> arcs;     // by state; state 0 is the start
  std::vector<std::optional<LatticeCost>> ends;  // by state: the cost of ending there
  std::vector<uint32_t> order;                   // every state, before those to which its arcs lead
};

// What of a lattice's labels is a word.
struct LatticeWords {
  // Words by their numbers, where lattices have numbers (Kaldi's words.txt).
  std::optional<std::unordered_map<std::string, std::string>> symbols;
  // Labels that are no part of the text, besides <eps>, <s> and </s>, and 0 of numbers.
  std::set<std::string> skipped;
};

// Reads lines "WORD NUMBER". Errors: KINGLET_INVALID_ARGUMENT, naming the line; KINGLET_IO_ERROR.
Result<std::unordered_map<std::string, std::string>> ReadSymbols(const std::string& path);

// Reads the archives that `lattice-copy ark:- ark,t:-` writes, compact or not, one lattice at a
// time: the utterance, lines of arcs and ends, a blank line. An arc is "FROM TO WORD COSTS", or
// "FROM TO LABEL WORD COSTS", COSTS being "GRAPH,ACOUSTIC" or "GRAPH,ACOUSTIC,TRANSITIONS" or
// absent for 0; an end is "STATE COSTS". The first line's state is the start.
class LatticeReader {
 public:
  // "-" is standard input.
  static Result<LatticeReader> Open(const std::string& path, LatticeWords words);

  // The next lattice; nullopt after the last one. A lattice without a path has no state. Errors:
  // KINGLET_INVALID_ARGUMENT, naming the line, also for an utterance that is there twice; those of
  // reading the file.
  Result<std::optional<Lattice>> Next();
  const std::string& name() const { return lines_.name(); }

 private:
  LatticeReader(DocumentReader lines, LatticeWords words)
      : lines_(std::move(lines)), words_(std::move(words)) {}
  Result<std::optional<std::string>> NextUtterance();

  DocumentReader lines_;
  LatticeWords words_;
  std::set<std::string> read_;  // utterances
};

}  // namespace kinglet

#endif  // KINGLET_TOOLS_LATTICE_H_
