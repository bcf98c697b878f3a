// kinglet score --lines: log-probability of every line of a text, each a sentence of its own.
#ifndef KINGLET_TOOLS_SCORE_LINES_H_
#define KINGLET_TOOLS_SCORE_LINES_H_

#include <memory>
#include <string>

#include "kinglet/status.h"
#include "runtime/model.h"
#include "tools/console.h"
#include "tools/run_options.h"
#include "tools/score_report.h"

namespace kinglet {

struct ScoreLinesOptions {
  std::string ids;   // path of a file with a sentence of ids on each line; empty: `text`
  std::string text;  // path of a text, "-": standard input
  std::string empty_cache = "normalised";
  bool begin = true, end = true;  // whether the family's own tokens surround a sentence
  bool log10 = false;             // the unit that the protocol names
  PlaceQuestions places;          // of each token
};

// Scores run.lanes lines at once. Prints the lines in order, and a summary. Errors: those of
// reading the file and of running the model, naming the line; KINGLET_UNSUPPORTED for a model
// without a token that begins or ends a sentence; KINGLET_INVALID_ARGUMENT if nothing could be
// scored.
Status ScoreLines(const RunOptions& run, const ScoreLinesOptions& options,
                  const std::shared_ptr<const Model>& model, ScoreReport& report, Console& console);

}  // namespace kinglet

#endif  // KINGLET_TOOLS_SCORE_LINES_H_
