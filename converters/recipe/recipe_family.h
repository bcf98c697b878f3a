// Checkpoints of a family whose network has other tables than the family knows: DPQ codes, DeFINE
// units and so on. The recipe says what they are made of; all else is the family's.
#ifndef KINGLET_CONVERTERS_RECIPE_RECIPE_FAMILY_H_
#define KINGLET_CONVERTERS_RECIPE_RECIPE_FAMILY_H_

#include <cstddef>
#include <map>
#include <memory>
#include <string>

#include "converters/checkpoints/checkpoint_tensors.h"
#include "converters/families/families.h"
#include "converters/recipe/recipe.h"
#include "kinglet/status.h"

namespace kinglet {

// The family sees a dense table under each name that the recipe gives (CheckpointTensor::made): of a
// tensor, in place of the checkpoint's own one, or of the module that is the network's input, in
// place of all its tables and projections. In the model that it makes, Place puts the recipe's form
// where the table came to stand.
class FamilyTables {
 public:
  // `checkpoint`: the family's tensors; `sources`: those of the recipe's other files. Errors:
  // KINGLET_INVALID_CHECKPOINT for names that both lack, and for sources that no table reads; those
  // of MakeEmbedding. REQUIRES: threads >= 1.
  static Result<FamilyTables> Make(const Recipe& recipe, const CheckpointTensors& checkpoint,
                                   const CheckpointTensors& sources, size_t threads);

  // What the family loads. Tensors that the recipe reads are still there, but may be omitted.
  const CheckpointTensors& weights() const { return weights_; }

  // Errors: KINGLET_INVALID_CHECKPOINT where a table in parts (with a projection, in bins, a DeFINE
  // unit that stays) does not stand for the whole input.
  Status Place(LoadedModel& model) const;

 private:
  // An embedding alone, and how its one table may stand elsewhere.
  struct Table;
  class Placer;

  CheckpointTensors weights_;
  std::map<std::string, std::shared_ptr<const Table>> tables_;
};

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_RECIPE_RECIPE_FAMILY_H_
