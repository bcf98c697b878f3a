// kinglet score --pairs: log-probability of every word of the given translations.
#ifndef KINGLET_TOOLS_SCORE_PAIRS_H_
#define KINGLET_TOOLS_SCORE_PAIRS_H_

#include <memory>
#include <string>

#include "kinglet/status.h"
#include "runtime/model.h"
#include "tools/console.h"
#include "tools/run_options.h"

namespace kinglet {

struct ScorePairsOptions {
  std::string pairs;    // path (converters/texts/pair_file.h)
  bool tokens = false;  // print each token, not only the summary
  bool hex = false;     // print the exact bits too
};

// Encodes each source and scores its target after the start token. `pos` in the output counts the
// target's tokens from 0, without the start token. KINGLET_UNSUPPORTED for a model without an
// encoder; otherwise errors of ReadPairs and of running the model, naming the sentence.
Status ScorePairs(const RunOptions& run, const ScorePairsOptions& options,
                  const std::shared_ptr<const Model>& model, Console& console);

}  // namespace kinglet

#endif  // KINGLET_TOOLS_SCORE_PAIRS_H_
