// Every operation of this directory, and how a block runs any of them. C++17.
#ifndef KINGLET_KERNELS_CUDA_OPERATIONS_H_
#define KINGLET_KERNELS_CUDA_OPERATIONS_H_

#include "kernels/cuda/attention.h"
#include "kernels/cuda/bag.h"
#include "kernels/cuda/cache.h"
#include "kernels/cuda/cluster_products.h"
#include "kernels/cuda/coded.h"
#include "kernels/cuda/define.h"
#include "kernels/cuda/embedding.h"
#include "kernels/cuda/positions.h"
#include "kernels/cuda/product.h"
#include "kernels/cuda/ranking.h"
#include "kernels/cuda/recurrent.h"
#include "kernels/cuda/softmax.h"
#include "kernels/cuda/step.h"
#include "kernels/cuda/vectors.h"

namespace kinglet::cuda {

using Operations =
    ArgumentList<NormaliseVector, QuantiseVector, AddVector, AddOne, FixedPoint, IntegerProduct,
                 RealProduct, LargestOfBlocks, ExponentialsOfBlocks, LogOfSum, LargestOfProducts,
                 LargestOfLane, ExponentialsOfProducts, RankWords, WordLogProbability, AttendHead,
                 ScoreSlots, WeighValues, AppendToCache, CacheProducts, CacheTotal,
                 AddRowOfPosition, AddToHeads, CopyRow, GatherRow, PartProducts, SumOfParts,
                 LstmCell, GruCell, RnnCell, QrnnCell, AppendToBag, FeaturesOfBag, ScaleAndRectify,
                 ComputeDefineRow>;

template <class T>
Step MakeStep(const T& arguments) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= Step::kMostBytes);
  Step step{};
  step.kind = internal::KindIn<T>(Operations());
  step.by_lane = internal::kByLane<T>;
  static_assert(internal::KindIn<T>(Operations()) != UINT32_MAX, "add it to Operations");
  memcpy(step.arguments, &arguments, sizeof arguments);
  return step;
}

// Units of the step for so many lanes, by blocks of so many warps.
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

KINGLET_HOST_DEVICE inline void RunUnit(const Step& step, const Work& work) {
  internal::WithArguments(Operations(), step, [&](const auto& p) { Run(p, work); });
}

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_OPERATIONS_H_
