// Inside the `cpu` backend: makes a kernel of each operation. A function returns an empty kernel if
// the vector functions cannot be used (32-bit codes, sums that need more than 31 bits, vectors
// longer than the stack arrays below); the reference kernel then runs the node.
#ifndef KINGLET_KERNELS_CPU_BIND_H_
#define KINGLET_KERNELS_CPU_BIND_H_

#include <cstddef>
#include <cstdint>

#include "kernels/backend.h"
#include "kernels/cpu/logit_tiles.h"
#include "kernels/cpu/many_product.h"
#include "kernels/cpu/vector.h"
#include "kernels/cpu/weights.h"
#include "kernels/op.h"
#include "kernels/plan.h"

namespace kinglet::cpu {

struct BindContext {
  const Plan& plan;
  const BufferLayout& layout;
  const VectorFunctions& vector;  // outlives every kernel
  WeightStore& weights;
  ManyProducts* many_products = nullptr;      // null if all products are our own
  SummedProducts* summed_products = nullptr;  // null if no product sums the tiles of its logits
};

// Kernels keep short-lived vectors on the stack, so that running one never allocates.
inline constexpr uint64_t kMaxColumns = 8192;
inline constexpr uint64_t kMaxWindow = 2048;
inline constexpr uint64_t kMaxKeySize = 1024;

// A buffer and, if it contains codes, their scale and the largest code.
struct Operand {
  Slot slot;
  Element element;
  float scale = 1.0f;
  int64_t largest = 0;  // code

  Operand(const BindContext& context, BufferId id);
  bool real() const { return element == Element::kReal; }
  bool code16() const { return element == Element::kCode16; }
};

Kernel BindOp(const CacheAppend& op, const BindContext& context);
Kernel BindOp(const EmbedRow& op, const BindContext& context);
Kernel BindOp(const LayerNorm& op, const BindContext& context);
Kernel BindOp(const MatVec& op, const BindContext& context);
Kernel BindOp(const PartialProducts& op, const BindContext& context);
Kernel BindOp(const CodedSums& op, const BindContext& context);
Kernel BindOp(const CodedProduct& op, const BindContext& context);
Kernel BindOp(const Quantise& op, const BindContext& context);
Kernel BindOp(const Add& op, const BindContext& context);
Kernel BindOp(const AddScalar& op, const BindContext& context);
Kernel BindOp(const WindowAttention& op, const BindContext& context);
// WindowAttention with relative positions, or with no positions.
Kernel BindStreamedAttention(const WindowAttention& op, const BindContext& context);
Kernel BindOp(const AddPositionRow& op, const BindContext& context);
Kernel BindOp(const AddSinusoids& op, const BindContext& context);
Kernel BindOp(const AddQueryBias& op, const BindContext& context);
Kernel BindOp(const LogSumExp& op, const BindContext& context);
Kernel BindOp(const CacheWeights& op, const BindContext& context);
Kernel BindOp(const LstmGates& op, const BindContext& context);
Kernel BindOp(const GruGates& op, const BindContext& context);
Kernel BindOp(const RnnGates& op, const BindContext& context);
Kernel BindOp(const QrnnGates& op, const BindContext& context);
// Bags of words read one vector a few times for each list of words: the reference kernels are fast
// enough.
inline Kernel BindOp(const BagAppend&, const BindContext&) { return {}; }
inline Kernel BindOp(const BagFeatures&, const BindContext&) { return {}; }
inline Kernel BindOp(const ScaleShiftRelu&, const BindContext&) { return {}; }
// Only few vectors are normalised in this way: the reference kernel is fast enough.
inline Kernel BindOp(const RootMeanSquareNorm&, const BindContext&) { return {}; }
Kernel BindOp(const ApplyActivation& op, const BindContext& context);
// Rows are only copied: the reference kernels are fast enough.
inline Kernel BindOp(const StoreRow&, const BindContext&) { return {}; }
inline Kernel BindOp(const LoadRow&, const BindContext&) { return {}; }
inline Kernel BindOp(const Join&, const BindContext&) { return {}; }
Kernel BindOp(const SourceAttention& op, const BindContext& context);

}  // namespace kinglet::cpu

#endif  // KINGLET_KERNELS_CPU_BIND_H_
