// kinglet score --pairs: log-probability of every word of the given translations.
#ifndef KINGLET_TOOLS_SCORE_PAIRS_H_
#define KINGLET_TOOLS_SCORE_PAIRS_H_

#include <memory>
#include <string>

#include "kinglet/status.h"
#include "runtime/model.h"
#include "tools/console.h"
#include "tools/run_options.h"
#include "tools/score_report.h"

namespace kinglet {

// Encodes each source of the file at `path` (converters/texts/pair_file.h) and scores its target
// after the start token, asking `places` of each word. `pos` in the output counts the target's
// tokens from 0, without the start token. KINGLET_UNSUPPORTED for a model without an encoder;
// otherwise errors of ReadPairs and of running the model, naming the sentence.
Status ScorePairs(const RunOptions& run, const std::string& path, const PlaceQuestions& places,
                  const std::shared_ptr<const Model>& model, ScoreReport& report, Console& console);

}  // namespace kinglet

#endif  // KINGLET_TOOLS_SCORE_PAIRS_H_
