#include "kernels/cuda/alone_kernel.cuh"
#include "kernels/cuda/ranking.h"

namespace kinglet::cuda {

AloneKernel RankWordsKernel() { return RunAlone<RankWords>; }
AloneKernel WordLogProbabilityKernel() { return RunAlone<WordLogProbability>; }

}  // namespace kinglet::cuda
