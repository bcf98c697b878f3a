// Options of convert that sensitivity has too: where a model comes from, and how it is quantised.
#ifndef KINGLET_TOOLS_CONVERT_ARGUMENTS_H_
#define KINGLET_TOOLS_CONVERT_ARGUMENTS_H_

#include <string>
#include <vector>

#include "converters/convert.h"
#include "tools/arguments.h"

namespace kinglet {

// CHECKPOINT, one or, with --average, several.
struct CheckpointChoice {
  std::vector<std::string> checkpoints;
  bool average = false;
};

// --family, --config, --average. Here and below, the arguments that options are stored in outlive
// the parsing.
void AddCheckpointOptions(Arguments& command, CheckpointChoice& choice, ConvertOptions& convert);
// --vocab, --vocab-from, --tokenizer, --lowercase.
void AddWordOptions(Arguments& command, ConvertOptions& convert);
// --recipe, --keep-define, --keep-characters, --mem-len, --ignore-option.
void AddNetworkOptions(Arguments& command, ConvertOptions& convert);
// --cache, --cache-theta, --cache-lambda.
void AddCacheOptions(Arguments& command, ConvertOptions& convert);

// How weights and activations are quantised, by the options' names.
struct QuantiserChoice {
  std::string scale_by{kScaleByNames[0]}, round_by{kRoundByNames[0]},
      calibrate_by{kRangeRuleNames[0]};
};
// --scale-by, --round-by.
void AddRoundingOptions(Arguments& command, QuantiserChoice& choice);
// --calibrate-by, --percentile.
void AddRangeOptions(Arguments& command, QuantiserChoice& choice, ConvertOptions& convert);
// REQUIRES: the names were parsed by these options.
void TakeQuantisers(const QuantiserChoice& choice, ConvertOptions& convert);

// A usage error unless the number of checkpoints suits --average. `command`: "convert".
Status CheckAverage(const std::string& command, const CheckpointChoice& choice);
void TakeCheckpoints(const CheckpointChoice& choice, ConvertOptions& convert);

}  // namespace kinglet

#endif  // KINGLET_TOOLS_CONVERT_ARGUMENTS_H_
