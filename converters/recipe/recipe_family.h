// Checkpoints of a family whose network has other tables than the family knows: DPQ codes, DeFINE
// units and so on. The recipe states how to make these tables; the family does the rest.
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

// The family sees a dense table under each name that the recipe gives (CheckpointTensor::made): the
// name of a tensor, whose values in the checkpoint it replaces, or of the module that is the
// network's input, all of whose tables and projections it replaces. Place then puts the recipe's
// form into the family's model, at the location of the dense table.
class FamilyTables {
 public:
  // `checkpoint` has the family's tensors, `others` those of the recipe's other files. Errors:
  // KINGLET_INVALID_CHECKPOINT for names that both lack, and for tensors of `others` that no table
  // reads; those of MakeEmbedding. REQUIRES: threads >= 1.
  static Result<FamilyTables> Make(const Recipe& recipe, const CheckpointTensors& checkpoint,
                                   const CheckpointTensors& others, size_t threads);

  // The tensors that the family loads. Those that the recipe reads are among them, but the family
  // need not claim them.
  const CheckpointTensors& weights() const { return weights_; }

  // Errors: KINGLET_INVALID_CHECKPOINT where a table of several tensors (with a projection, in
  // bins, a DeFINE unit that stays) does not replace the entire input.
  Status Place(LoadedModel& model) const;

 private:
  // An embedding; if it is a single table, that table may replace any other.
  struct Table;
  class Placer;

  CheckpointTensors weights_;
  std::map<std::string, std::shared_ptr<const Table>> tables_;
};

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_RECIPE_RECIPE_FAMILY_H_
