// N-best lists: the texts that a recogniser proposes for each utterance, and files of them.
#ifndef KINGLET_TOOLS_HYPOTHESIS_LISTS_H_
#define KINGLET_TOOLS_HYPOTHESIS_LISTS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "kinglet/status.h"
#include "tools/document_reader.h"

namespace kinglet {

struct Hypothesis {
  uint64_t number = 0;          // Kaldi's, or the position in the list, from 1
  std::optional<double> given;  // the recogniser's score; finite; higher is better
  std::string text;
};

struct HypothesisList {
  std::string utterance;
  std::vector<Hypothesis> hypotheses;  // in the file's order; at least one
};

// The ways to write lists, one hypothesis a line.
enum class ListFormat : uint8_t {
  kKaldi,  // "UTTERANCE-3 TEXT", as Kaldi and ESPnet write them
  kTabs,   // "UTTERANCE<tab>SCORE<tab>TEXT"
  // {"utt":"..","score":-1.5,"text":".."}; the score may be missing. "hypothesis" is its number;
  // other members are ignored, and so is the summary of `rescore --json`
  kJson,
  kMoses,  // "0 ||| TEXT ||| FEATURES ||| SCORE", as Moses writes them
};

// Guesses from the first line that is not empty: "{" begins an object, two tabs or " ||| " separate
// fields.
ListFormat GuessListFormat(std::string_view text);

// The lists of a file, utterances in the order of their first hypotheses. `input_name` names the
// file in messages. Empty lines are omitted. Errors: KINGLET_INVALID_ARGUMENT, naming the line,
// also where a number of an utterance stands twice.
Result<std::vector<HypothesisList>> ParseHypothesisLists(std::string_view text, ListFormat format,
                                                         const std::string& input_name);

// Reads lists one by one, in the memory of the largest list and about 40 bytes for each utterance.
class ListReader {
 public:
  // Without a format, the first line that is not empty tells it. "-" is standard input. Errors:
  // those of opening the file.
  static Result<ListReader> Open(const std::string& path, std::optional<ListFormat> format);

  // The next list; nullopt after the last one. Errors: those of ParseHypothesisLists and of reading
  // the file; KINGLET_UNSUPPORTED where lines of an utterance are not one after the other.
  Result<std::optional<HypothesisList>> Next();

 private:
  ListReader(DocumentReader lines, std::optional<ListFormat> format)
      : lines_(std::move(lines)), format_(format) {}

  DocumentReader lines_;
  std::optional<ListFormat> format_;
  HypothesisList list_;                 // whose lines are being read; empty before the first
  std::set<uint64_t> numbers_;          // of its hypotheses
  std::unordered_set<uint64_t> begun_;  // digests of all utterances so far
};

// The lists of ESPnet's folders 1best_recog, 2best_recog, .., in `folder` or up to two folders
// below it. Each has a file `text`, lines "UTTERANCE TEXT", and perhaps a file `score`, lines
// "UTTERANCE -5.1" or "UTTERANCE tensor(-5.1)". Errors: KINGLET_INVALID_ARGUMENT, naming the line;
// KINGLET_NOT_FOUND if there are none; KINGLET_IO_ERROR.
Result<std::vector<HypothesisList>> ReadNBestFolders(const std::string& folder);

// Adds `factor` times the scores of another file, lines "UTTERANCE-3 SCORE", to the given scores.
// Every hypothesis must have a score, and each score a hypothesis. Errors:
// KINGLET_INVALID_ARGUMENT, naming the line or the hypothesis.
Status AddGivenScores(std::string_view text, const std::string& input_name, double factor,
                      std::vector<HypothesisList>& lists);

// Reference transcripts by utterance: lines "UTTERANCE<tab>TEXT". Errors: KINGLET_INVALID_ARGUMENT,
// naming the line.
Result<std::map<std::string, std::string>> ParseReferences(std::string_view text,
                                                           const std::string& input_name);

}  // namespace kinglet

#endif  // KINGLET_TOOLS_HYPOTHESIS_LISTS_H_
