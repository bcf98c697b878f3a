// The list of all kinds of device steps, and how a block runs a step of any kind. C++17.
#ifndef KINGLET_KERNELS_CUDA_OPERATIONS_H_
#define KINGLET_KERNELS_CUDA_OPERATIONS_H_

#include "kernels/cuda/attention.h"
#include "kernels/cuda/bag.h"
#include "kernels/cuda/cache.h"
#include "kernels/cuda/cluster_products.h"
#include "kernels/cuda/coded.h"
#include "kernels/cuda/define.h"
#include "kernels/cuda/embedding.h"
#include "kernels/cuda/fixed_point.h"
#include "kernels/cuda/positions.h"
#include "kernels/cuda/product.h"
#include "kernels/cuda/ranking.h"
#include "kernels/cuda/real_product.h"
#include "kernels/cuda/recurrent.h"
#include "kernels/cuda/softmax.h"
#include "kernels/cuda/step.h"
#include "kernels/cuda/vectors.h"

namespace kinglet::cuda {

// Step::kind is an index into this list.
using Operations =
    ArgumentList<NormaliseVector, QuantiseVector, AddVector, AddOne, FixedPoint, IntegerProduct,
                 RealProduct, LargestOfBlocks, TermsOfBlocks, LogOfSum, LargestOfProducts,
                 TermsOfProducts, RankWords, WordLogProbability, AttendHead, ScoreSlots,
                 WeighValues, AppendToCache, CacheProducts, CacheTotal, AddRowOfPosition,
                 AddToHeads, CopyRow, GatherRow, PartProducts, SumOfParts, LstmCell, GruCell,
                 RnnCell, QrnnCell, AppendToBag, FeaturesOfBag, ScaleAndRelu, ComputeDefineRow,
                 ScaleToUnitMeanSquare, ActivateVector>;

template <class T>
Step MakeStep(const T& arguments) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= Step::kMaxBytes);
  Step step{};
  step.kind = internal::KindIn<T>(Operations());
  step.by_lane = internal::kByLane<T>;
  step.alone_from_lanes = internal::kAloneFromLanes<T>;
  static_assert(internal::KindIn<T>(Operations()) != UINT32_MAX, "add it to Operations");
  memcpy(step.arguments, &arguments, sizeof arguments);
  return step;
}

// Whether the step is of kind T.
template <class T>
bool IsKind(const Step& step) {
  return step.kind == internal::KindIn<T>(Operations());
}

// The units of the step for so many lanes, on blocks of so many warps.
KINGLET_HOST_DEVICE inline uint32_t UnitsOf(const Step& step, uint32_t lanes, uint32_t warps) {
  uint32_t units = 0;
  internal::WithArguments(Operations(), step,
                          [&](const auto& p) { units = p.Units(lanes, warps); });
  return units;
}

KINGLET_HOST_DEVICE inline uint64_t SharedBytesOf(const Step& step) {
  uint64_t bytes = 0;
  internal::WithArguments(Operations(), step, [&](const auto& p) { bytes = p.SharedBytes(); });
  return bytes;
}

namespace internal {
template <class T>
constexpr bool kHasOtherCodeForFewLanes =
    std::is_same_v<T, IntegerProduct> || std::is_same_v<T, AttendHead>;
// Not inlined: the compiler takes many minutes for one function with all kinds of steps in it.
template <class T>
KINGLET_HOST_DEVICE KINGLET_NOINLINE void RunApart(const Step& step, const Work& work) {
  if constexpr (kHasOtherCodeForFewLanes<T>) {
    RunForFewLanes(ArgumentsOf<T>(step), work);
  } else {
    Run(ArgumentsOf<T>(step), work);
  }
}
template <class T>
KINGLET_HOST_DEVICE void RunIfAmongOthers(const Step& step, const Work& work) {
  constexpr uint32_t kFromLanes = kAloneFromLanes<T>;
  if constexpr (kFromLanes > 1) {
    constexpr uint32_t kKind = KindIn<T>(Operations());
    if (step.kind == kKind) RunApart<T>(step, work);
  }
}
template <class... A>
KINGLET_HOST_DEVICE void RunAmong(ArgumentList<A...>, const Step& step, const Work& work) {
  (RunIfAmongOthers<A>(step, work), ...);
}
template <class... A>
void RunAlone(ArgumentList<A...>, const Step& step, const Work& work) {
  uint32_t kind = 0;
  ((step.kind == kind++ ? Run(ArgumentsOf<A>(step), work) : void()), ...);
}
}  // namespace internal

// Runs a unit in the kernel that has all kinds of steps. Kinds that always have a kernel of their
// own are left out, and so are products for many lanes, of which more blocks fit a multiprocessor
// in a kernel of their own.
KINGLET_HOST_DEVICE inline void RunUnitAmongOthers(const Step& step, const Work& work) {
  internal::RunAmong(Operations(), step, work);
}

// Runs a unit on the host, of any step and any number of lanes.
inline void RunUnit(const Step& step, const Work& work) {
  if (work.lane_count < step.alone_from_lanes) return RunUnitAmongOthers(step, work);
  internal::RunAlone(Operations(), step, work);
}

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_OPERATIONS_H_
