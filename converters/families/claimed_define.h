// The tensors of a DeFINE unit (Mehta et al. 2020) under the names that
// pranavajitnair/DeFINE-AWD-LSTM gives them. Sizes, groups and depth follow from the shapes. Units
// with other names, such as those of sacmehta/delight, are converted by recipes (docs/RECIPES.md).
#ifndef KINGLET_CONVERTERS_FAMILIES_CLAIMED_DEFINE_H_
#define KINGLET_CONVERTERS_FAMILIES_CLAIMED_DEFINE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "converters/checkpoints/checkpoint_tensors.h"
#include "converters/network/network.h"
#include "converters/passes/define/define_table.h"
#include "converters/passes/define/define_weights.h"
#include "format/blocks.h"
#include "kinglet/status.h"

namespace kinglet {

// A unit and the tensors of its Map layer and its group linear transformations (GLT). nullptr is a
// missing tensor, which the network reports.
struct ClaimedDefine {
  struct Band {
    const CheckpointTensor* table = nullptr;       // [words, width]
    const CheckpointTensor* projection = nullptr;  // [n, width]
  };
  struct Layer {
    const CheckpointTensor* weight = nullptr;
    const CheckpointTensor* bias = nullptr;
  };
  std::vector<Band> bands;
  DefineUnit unit;
  std::vector<Layer> layers;  // one for each layer of the unit
  uint64_t width = 0;         // of the unit's output; 0: unknown, because a tensor is faulty

  uint64_t Words() const;  // of all bands
};

// Claims embeddings.embeds.*, embeddings.projcs.* and define.*, each with `prefix` in front. The
// network's CheckNames reports what is missing or mis-shaped. The unit has one matrix for all
// groups of a layer, a mixer with the previous output first, biases but no norms and activations,
// and a projection in every band. `embeddings.classes.*` belongs to the output and is not claimed.
ClaimedDefine ClaimDefine(Network& network, const std::string& prefix = "");
// Whether the checkpoint has a unit whose names begin with `prefix`.
bool HasDefine(const Network& network, const std::string& prefix);

// Describes the unit as one that stays in the model: the bands of its Map layer become the
// embedding's bins, and each stream caches `cache_rows` of its rows.
void AddUnit(const ClaimedDefine& claimed, uint32_t cache_rows, Network& network,
             AdaptiveEmbedding& embedding);

// The arguments of DefineTable (converters/passes/define/define_table.h).
struct DefineInput {
  DefineMap map;
  DefineUnit unit;
  std::vector<DefineWeights> weights;
};
// Errors: those of ReadFinite and CheckUnit. REQUIRES: the network's CheckNames found nothing.
Result<DefineInput> ReadDefine(const ClaimedDefine& claimed);

// The unit's outputs for all words, [Words(), width], as a tensor that is not in the checkpoint.
// Computed when the tensor is read; the tensor owns what it needs. REQUIRES: the width is known,
// and the network's CheckNames finds nothing when the tensor is read.
CheckpointTensor DefineTableTensor(const std::string& name, const ClaimedDefine& claimed);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_FAMILIES_CLAIMED_DEFINE_H_
