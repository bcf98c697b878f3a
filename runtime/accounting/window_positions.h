// The effect of the positions of sliding-window attention on counts.
#ifndef KINGLET_RUNTIME_ACCOUNTING_WINDOW_POSITIONS_H_
#define KINGLET_RUNTIME_ACCOUNTING_WINDOW_POSITIONS_H_

#include <variant>

#include "format/overloaded.h"
#include "kernels/op.h"

namespace kinglet {

// Whether scores include products of the query with positions.
inline bool ScoresPositions(const WindowAttention& op) {
  return std::visit(
      Overloaded{[](const std::monostate&) { return false; },
                 []<OneOf<SlotColumns, RelativeRows> Kind>(const Kind&) { return true; }},
      op.positions);
}

// Whether every slot of the window gets a weight, even slots that no token has filled, because
// columns of positions are multiplied completely.
inline bool WeighsWholeWindow(const WindowAttention& op) {
  return std::visit(
      Overloaded{[]<OneOf<std::monostate, RelativeRows> Kind>(const Kind&) { return false; },
                 [](const SlotColumns&) { return true; }},
      op.positions);
}

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_ACCOUNTING_WINDOW_POSITIONS_H_
