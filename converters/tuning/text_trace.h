// Runs of a model over a text for tuning: the trace that tuning starts from, and the score of its
// result. No other file of tuning uses sessions.
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

// Called now and then with the number of tokens of a run that are done.
using RunProgress = std::function<void(uint64_t done)>;

// The network's hidden state and prediction after each token but the last, without any cache.
struct TextTrace {
  std::vector<uint32_t> ids;              // [n], n >= 2
  std::vector<double> log_probabilities;  // [n - 1]: of ids[t + 1] after ids[0 .. t]
  uint64_t width = 0;                     // of a hidden state
  std::vector<float> hidden;              // [n - 1, width]: floats, or codes widened exactly
  // Factor of hidden[s] . hidden[t]: 1 for floats, the squared scale of the quantiser for codes.
  float product_scale = 1;
};

// Runs the model over ids. REQUIRES: the model has no neural cache, so that log-probabilities are
// those of the softmax; two ids or more. Errors: those of opening and running a model.
Result<TextTrace> TraceText(std::shared_ptr<const ModelFile> file, std::span<const uint32_t> ids,
                            const RunProgress& progress);

// The mean negative log-probability per token, in nats, as `kinglet score` computes it: from the
// start of a stream; the first id is input only. REQUIRES: two ids or more.
Result<double> ScoreText(std::shared_ptr<const ModelFile> file, std::span<const uint32_t> ids,
                         const RunProgress& progress);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_TUNING_TEXT_TRACE_H_
