// How a text becomes the tokens of one stream, for all that scores texts: known answers, tuning,
// calibration and the command.
#ifndef KINGLET_RUNTIME_SCORED_STREAM_H_
#define KINGLET_RUNTIME_SCORED_STREAM_H_

#include <cstdint>
#include <span>
#include <vector>

#include "format/blocks.h"

namespace kinglet {

// The model's start token, where it has one, and the text. The first is input only; each other
// token is predicted from those before it.
std::vector<uint32_t> ScoredStream(const ModelDescription& description,
                                   std::span<const uint32_t> text);

// Where in the text its first predicted token is: 0 behind a start token, otherwise 1. So the
// stream's token i is the text's token i - 1 + FirstPredicted.
uint64_t FirstPredicted(const ModelDescription& description);

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_SCORED_STREAM_H_
