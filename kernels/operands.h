// What operations (kernels/op.h) compute with: buffers of a plan, and tensors of its model file.
//
// Each operation has a name, and a function Operands(visit), which calls
//   visit.Reads(id), visit.Writes(id)   for each buffer of which it reads or writes anything,
//   visit.Weight(id)                    for each tensor that it names, of which it reads anything,
//   visit.Codes(id)                     for each table whose codes, where it is coded, it looks up.
// VisitOperands (kernels/plan.h) adds the codebooks, which only the coded tables name.
#ifndef KINGLET_KERNELS_OPERANDS_H_
#define KINGLET_KERNELS_OPERANDS_H_

#include <cstdint>

#include "format/blocks.h"

namespace kinglet {

enum class BufferId : uint32_t {};
using WeightId = TensorId;

// A base for visitors that need only some kinds of operands: they hide the functions for these.
struct OperandVisitor {
  void Reads(BufferId) {}
  void Writes(BufferId) {}
  void Weight(WeightId) {}
  void Codes(WeightId) {}
};

}  // namespace kinglet

#endif  // KINGLET_KERNELS_OPERANDS_H_
