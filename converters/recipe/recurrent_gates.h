// The order in which a checkpoint stacks the gates of a recurrent layer's weights. Frameworks and
// papers differ, with the same shapes. Conversion brings the gates into the model's form
// (format/blocks.h, RecurrentCell).
#ifndef KINGLET_CONVERTERS_RECIPE_RECURRENT_GATES_H_
#define KINGLET_CONVERTERS_RECIPE_RECURRENT_GATES_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "converters/network/change.h"
#include "converters/recipe/recipe_node.h"
#include "format/blocks.h"
#include "kinglet/status.h"

namespace kinglet {

struct RecurrentGates {
  // By gate of the model: the index of its group of rows in the checkpoint. Empty: both orders are
  // the same.
  std::vector<size_t> block_of;
  double forget_bias = 0;  // added to f when an LSTM runs
  // The gate whose sigmoid weighs the old state in the checkpoint and the new value in the model,
  // or the other way round. Its rows change their sign: s(-a) = 1 - s(a).
  std::optional<size_t> negated;

  bool operator==(const RecurrentGates&) const = default;
};

// Reads "gates", "forget_bias", "weighs" and "reset" of a recurrent block whose layers are listed.
// Each key is required for the cells that have it and refused for the others. Errors:
// KINGLET_INVALID_ARGUMENT naming the location in the JSON.
Result<RecurrentGates> ParseRecurrentGates(const RecipeNode& node, RecurrentCell cell);

// Refuses the keys of ParseRecurrentGates next to "torch": a torch.nn module has one form.
Status RefuseRecurrentGates(const RecipeNode& node);

// A change of the values of a layer's weight [G n, ..] or bias [G n]; G = GatesOf(cell). Values
// whose number is not a multiple of G stay as they are.
// Brings rows into the model's form. `with_forget_bias`: the rows are a bias, and the forget bias
// is added.
Change ArrangedGates(const RecurrentGates& gates, RecurrentCell cell, bool with_forget_bias);

// The bias of a layer that has only a forget bias.
std::vector<float> ForgetBiasAlone(const RecurrentGates& gates, size_t units);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_RECIPE_RECURRENT_GATES_H_
