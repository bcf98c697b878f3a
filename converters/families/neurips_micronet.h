// The family `neurips-micronet`: MicroNet (Yan et al. 2020, "MicroNet for Efficient Language
// Modeling"), a Transformer with adaptive embedding and softmax and a neural cache. Its training
// also used a Hebbian softmax and distillation, which the checkpoint does not show.
// Framework: mit-han-lab/neurips-micronet. Files: models/model-<step>.pth and config.yaml.
// Peculiarities:
//   - input and output tables are one parameter; if the file stores both, the output's is used,
//     because the original loads it last
//   - rows of loss.clusters are in reverse order of the tails
//   - the quantised network attends to zero keys before the stream's start, the float one does not
#ifndef KINGLET_CONVERTERS_FAMILIES_NEURIPS_MICRONET_H_
#define KINGLET_CONVERTERS_FAMILIES_NEURIPS_MICRONET_H_

#include <span>
#include <string_view>

#include "converters/checkpoints/checkpoint_tensors.h"
#include "converters/families/families.h"
#include "converters/families/micronet_config.h"
#include "kinglet/status.h"

namespace kinglet {

// Blocks and float32 tensors. Tensors have their names in the state dict, shared tables the
// output's. Errors: KINGLET_INVALID_CHECKPOINT for missing, unused and mis-shaped tensors (all in
// one message) and for values that are not finite, by tensor and index.
Result<LoadedModel> MicronetDraft(const MicronetConfig& config,
                                  std::span<const CheckpointTensor> weights,
                                  NameReport* report = nullptr);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_FAMILIES_NEURIPS_MICRONET_H_
