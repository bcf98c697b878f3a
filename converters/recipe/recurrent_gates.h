// How a checkpoint stacks the gates of a recurrent layer's weights, which frameworks and papers do
// differently with the same shapes. Conversion brings them into the model's form
// (format/blocks.h, RecurrentCell).
#ifndef KINGLET_CONVERTERS_RECIPE_RECURRENT_GATES_H_
#define KINGLET_CONVERTERS_RECIPE_RECURRENT_GATES_H_

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "converters/recipe/recipe_node.h"
#include "format/blocks.h"
#include "kinglet/status.h"

namespace kinglet {

struct RecurrentGates {
  // By gate of the model: which block of the checkpoint's rows it is. Empty: the same one.
  std::vector<size_t> block_of;
  double forget_bias = 0;  // what an LSTM adds to f when it runs
  // The gate of the model whose sigmoid weighs the other one of old state and new value, so that
  // its rows change their sign: s(-a) = 1 - s(a).
  std::optional<size_t> negated;

  bool operator==(const RecurrentGates&) const = default;
};

// Reads "gates", "forget_bias", "weighs" and "reset" of a recurrent block whose layers are listed.
// Each is demanded of the cells that have it and refused of the others. Errors:
// KINGLET_INVALID_ARGUMENT naming the place in the JSON.
Result<RecurrentGates> ParseRecurrentGates(const RecipeNode& node, RecurrentCell cell);

// Refuses all of them beside "torch": a torch.nn module has one form.
Status RefuseRecurrentGates(const RecipeNode& node);

// What happens to the values of a layer's weight [G n, ..] or bias [G n] when they are read; G =
// GatesOf(cell). Values of another number stay as they are.
struct GateChange {
  std::string name;  // equal names: equal changes of a layer's tensors; empty: nothing happens
  std::function<void(std::vector<float>& values)> apply;
};
// Brings rows into the model's form. `with_forget_bias`: of the bias that takes the forget bias in.
GateChange ArrangedGates(const RecurrentGates& gates, RecurrentCell cell, bool with_forget_bias);

// The bias of a layer that has none but the forget bias.
std::vector<float> ForgetBiasAlone(const RecurrentGates& gates, size_t units);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_RECIPE_RECURRENT_GATES_H_
