// The DeFINE input of pranavajitnair/DeFINE-AWD-LSTM by its names in a checkpoint. Sizes, groups
// and depth are read off the tensors' shapes. Units of other names, sacmehta/delight's and the
// reference module's among them, are what recipes are for (docs/RECIPES.md).
#ifndef KINGLET_CONVERTERS_FAMILIES_DEFINE_SOURCE_H_
#define KINGLET_CONVERTERS_FAMILIES_DEFINE_SOURCE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "converters/families/draft_builder.h"
#include "converters/passes/define/define_table.h"
#include "converters/passes/define/define_weights.h"
#include "converters/sources/source_weights.h"
#include "format/blocks.h"
#include "kinglet/status.h"

namespace kinglet {

// A declared unit and where its values and Map's are. A null tensor is missing, and the builder
// knows.
struct DefineSource {
  struct Band {
    const SourceTensor* table = nullptr;       // [words, width]
    const SourceTensor* projection = nullptr;  // [n, width]
  };
  struct Layer {
    const SourceTensor* weight = nullptr;
    const SourceTensor* bias = nullptr;
  };
  std::vector<Band> bands;
  DefineUnit unit;
  std::vector<Layer> layers;  // of the unit's layers
  uint64_t width = 0;         // of the unit's output; 0: not known

  uint64_t Words() const;  // of all bands
};

// Claims embeddings.embeds.*, embeddings.projcs.* and define.*, each behind `prefix`, and leaves
// what is missing or mis-shaped to the builder's CheckNames. One matrix for all groups of a layer,
// mixed chunks with the previous output first, nothing but a bias after a product; Map is always
// projected. `embeddings.classes.*` belongs to the output and stays unclaimed.
DefineSource ClaimDefine(DraftBuilder& builder, const std::string& prefix = "");
// Whether there is such an input behind the prefix.
bool HasDefine(const DraftBuilder& builder, const std::string& prefix);

// Describes the input as a unit that stays in the model, with a cache of so many rows: its Map as
// the embedding's bins. Returns the tables of the bands.
std::vector<TensorId> AddUnit(const DefineSource& source, uint32_t cache_rows,
                              DraftBuilder& builder, AdaptiveEmbedding& embedding);

// What DefineTable needs.
struct DefineInput {
  DefineMap map;
  DefineUnit unit;
  std::vector<DefineWeights> weights;
};
// Errors: as ReadFinite and CheckUnit. REQUIRES: the builder's CheckNames found nothing.
Result<DefineInput> ReadDefine(const DefineSource& source);

// The table [Words(), width] that the input amounts to, as a tensor that the checkpoint does not
// hold; it is computed when it is read, from tensors of its own. REQUIRES: its width is known and
// the builder's CheckNames finds nothing when it is read.
SourceTensor DefineTableTensor(const std::string& name, const DefineSource& source);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_FAMILIES_DEFINE_SOURCE_H_
