// The family `transformer-xl`: Transformer-XL (Dai et al. 2019, "Transformer-XL: Attentive Language
// Models beyond a Fixed-Length Context").
// Framework: kimiyoung/transformer-xl, PyTorch. Files: model.pt, the pickled model. Peculiarities:
//   - attributes of the pickled objects tell how the network runs; a --config file may replace
//     mem_len, clamp_len and same_length, as the framework's eval.py does, or give all of them
//     if only a state dict was saved
//   - the memory starts empty
//   - rows of cluster_weight are in reverse order of the bins
#ifndef KINGLET_CONVERTERS_FAMILIES_TRANSFORMER_XL_H_
#define KINGLET_CONVERTERS_FAMILIES_TRANSFORMER_XL_H_

#include <span>
#include <string_view>
#include <vector>

#include "converters/checkpoints/checkpoint_tensors.h"
#include "converters/families/families.h"
#include "converters/families/pickled_modules.h"
#include "kinglet/status.h"

namespace kinglet {

inline constexpr std::string_view kTransformerXlFamily = "transformer-xl";

bool LooksLikeTransformerXl(std::span<const CheckpointTensor> weights);

// The pickled network.
const PickledNetwork& TransformerXlModules();
// The options of configurations, and of the classes.
std::span<const OptionTable> TransformerXlOptions();

// Errors: those of LoadTransformerXlNetwork, ConfigFile and CheckOptions;
// KINGLET_INVALID_CHECKPOINT for an attribute that neither module nor configuration has;
// KINGLET_UNSUPPORTED for modules that differ from each other. REQUIRES: CheckPickledModules
// accepts the modules.
Result<LoadedModel> LoadTransformerXl(const FamilyInput& input);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_FAMILIES_TRANSFORMER_XL_H_
