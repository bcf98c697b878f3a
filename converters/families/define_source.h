// DeFINE inputs by their names in a checkpoint: two public implementations and the reference
// module. Sizes, groups and depth are read off the tensors' shapes.
#ifndef KINGLET_CONVERTERS_FAMILIES_DEFINE_SOURCE_H_
#define KINGLET_CONVERTERS_FAMILIES_DEFINE_SOURCE_H_

#include <string>
#include <vector>

#include "converters/families/draft_builder.h"
#include "converters/families/source_weights.h"
#include "converters/passes/define/define_table.h"
#include "converters/passes/define/define_unit.h"
#include "kinglet/status.h"

namespace kinglet {

// A declared unit and where its values and Map's are. A null tensor: there is none, or it is
// missing and the builder knows.
struct DefineSource {
  struct Band {
    const SourceTensor* table = nullptr;       // [words, width]
    const SourceTensor* projection = nullptr;  // [n, width]
    double scale = 1;
  };
  struct Layer {
    const SourceTensor* weight = nullptr;
    const SourceTensor* bias = nullptr;
    const SourceTensor* norm_gain = nullptr;
    const SourceTensor* norm_offset = nullptr;
  };
  std::vector<Band> bands;
  DefineUnit unit;
  std::vector<Layer> layers;  // of the unit's layers
};

// Each claims its tensors, whose names start with `prefix` ("" or ending in a dot), and leaves what
// is missing or mis-shaped to the builder's CheckNames.

// pranavajitnair/DeFINE-AWD-LSTM: embeddings.embeds.*, embeddings.projcs.*, define.*. One matrix
// for all groups of a layer, mixed chunks with the previous output first, nothing but a bias after
// a product; Map is always projected. `embeddings.classes.*` belongs to the output and stays
// unclaimed.
DefineSource ClaimAwdDefine(DraftBuilder& builder, const std::string& prefix);

// What DeLighT's options say and its tensors do not.
struct DelightDefineOptions {
  DefineLayer::Activation activation = DefineLayer::Activation::kSwish;
  bool scaled_map = true;      // unless --no-scale-embedding
  bool shuffled = false;       // --glt-shuffle, which --define-iclr turns off
  double norm_epsilon = 1e-5;  // torch.nn.LayerNorm's
};
// sacmehta/delight, DExTraEmb: map_layer.*, dextra_layer.*. An entry layer makes the e that later
// layers see; a matrix for each group, mixed chunks with e first, layer normalisation per group and
// an activation after every product. Both its DeFINE and its DeXTra sizes are read.
DefineSource ClaimDelightDefine(DraftBuilder& builder, const std::string& prefix,
                                const DelightDefineOptions& options);

// The DeFINE module of examples and references: base.emb.*, base.proj.*, layers.*, reduce. A matrix
// for each group, mixed chunks with e first, ReLU, a plain Reduce.
DefineSource ClaimPlainDefine(DraftBuilder& builder, const std::string& prefix);

// What DefineTable needs.
struct DefineInput {
  DefineMap map;
  DefineUnit unit;
  std::vector<DefineWeights> weights;
};
// Errors: as ReadFinite and CheckUnit. REQUIRES: the builder's CheckNames found nothing.
Result<DefineInput> ReadDefine(const DefineSource& source);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_FAMILIES_DEFINE_SOURCE_H_
