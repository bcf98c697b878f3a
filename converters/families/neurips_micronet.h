// MicroNet (Yan et al. 2020, "MicroNet for Efficient Language Modeling"; training code
// mit-han-lab/neurips-micronet): tensor names -> blocks, with the network's peculiarities:
//   - input and output tables are one parameter; where the file has two, the output's is used,
//     because the original loads it last
//   - rows of loss.clusters are in reverse order of the tails
//   - the quantised network attends to zero keys before the stream's start, the float one does not
#ifndef KINGLET_CONVERTERS_FAMILIES_NEURIPS_MICRONET_H_
#define KINGLET_CONVERTERS_FAMILIES_NEURIPS_MICRONET_H_

#include <span>
#include <string_view>

#include "converters/families/families.h"
#include "converters/families/micronet_config.h"
#include "converters/sources/source_weights.h"
#include "kinglet/status.h"

namespace kinglet {

inline constexpr std::string_view kMicronetFamily = "neurips-micronet";

bool LooksLikeMicronet(std::span<const SourceTensor> weights);

// Blocks and float32 tensors under their names in the state dict (tables under the output's).
// Missing, unused and mis-shaped tensors are refused all together in one line; a value that is not
// finite by tensor and index. Errors: KINGLET_INVALID_CHECKPOINT.
Result<LoadedModel> MicronetDraft(const MicronetConfig& config,
                                  std::span<const SourceTensor> weights);

// The same with the configuration from its file: the given one, or config.yaml beside the
// checkpoint or one folder up.
Result<LoadedModel> LoadMicronet(const FamilyInput& input);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_FAMILIES_NEURIPS_MICRONET_H_
