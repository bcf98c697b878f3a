// How a text becomes the tokens of one stream, for all code that scores texts: golden answers,
// tuning, calibration and the command.
#ifndef KINGLET_RUNTIME_SCORED_STREAM_H_
#define KINGLET_RUNTIME_SCORED_STREAM_H_

#include <cstdint>
#include <span>
#include <vector>

#include "format/blocks.h"

namespace kinglet {

// The model's start token, if it has one, followed by the text. The first token is input only;
// every other token is predicted from those before.
std::vector<uint32_t> ScoredStream(const ModelDescription& description,
                                   std::span<const uint32_t> text);

// The index in the text of its first predicted token: 0 if a start token comes before it, else 1.
// The stream's token i is the text's token i - 1 + FirstPredicted.
uint64_t FirstPredicted(const ModelDescription& description);

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_SCORED_STREAM_H_
