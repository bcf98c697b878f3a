// What one run of a model over a text leaves for tuning, and the run that judges the result. All
// that tuning asks of the runtime's sessions is here.
#ifndef KINGLET_CONVERTERS_TUNING_TEXT_TRACE_H_
#define KINGLET_CONVERTERS_TUNING_TEXT_TRACE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "format/model_file.h"
#include "kinglet/status.h"

namespace kinglet {

// Told how many tokens of a run are done.
using RunProgress = std::function<void(uint64_t done)>;

// For each token but the last: what the network, without any cache, left and said after it.
struct TextTrace {
  std::vector<uint32_t> ids;              // [n], n >= 2
  std::vector<double> log_probabilities;  // [n - 1]: of ids[t + 1] after ids[0 .. t]
  uint64_t width = 0;                     // of a hidden state
  std::vector<float> hidden;              // [n - 1, width]: reals, or codes widened exactly
  float product_scale = 1;                // of hidden[s] . hidden[t]: 1, or the codes' step squared
};

// Runs the model over ids. REQUIRES: it has no neural cache, so that its log-probabilities are the
// softmax's; two ids or more. Errors: those of opening and running a model.
Result<TextTrace> TraceText(std::shared_ptr<const ModelFile> file, std::span<const uint32_t> ids,
                            const RunProgress& progress);

// The mean negative log-probability per token, in nats, that `kinglet score` gives the same ids:
// fresh state, the first id is input only. REQUIRES: two ids or more.
Result<double> ScoreText(std::shared_ptr<const ModelFile> file, std::span<const uint32_t> ids,
                         const RunProgress& progress);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_TUNING_TEXT_TRACE_H_
