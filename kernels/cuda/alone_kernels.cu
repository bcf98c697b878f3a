#include "kernels/cuda/alone_kernels.h"
#include "kernels/cuda/operations.h"

namespace kinglet::cuda {
namespace {

template <class Operation>
__global__ void __launch_bounds__(kBlockThreads)
    RunAlone(const Step* step, const Lane* lanes, uint32_t lane_count) {
  const Block block(kBlockThreads);
  const auto arguments = ArgumentsOf<Operation>(*step);
  const uint32_t units = arguments.Units(lane_count, kBlockWarps);
  for (uint32_t unit = blockIdx.x; unit < units; unit += gridDim.x) {
    Run(arguments, Work{lanes, lane_count, unit, block});
  }
}

template <class Operation>
AloneKernel KernelIfAlone() {
  if constexpr (internal::kAloneFromLanes<Operation> != UINT32_MAX) {
    return RunAlone<Operation>;
  } else {
    return nullptr;
  }
}

template <class... A>
AloneKernel FindIn(ArgumentList<A...>, uint32_t kind) {
  const AloneKernel kernels[] = {KernelIfAlone<A>()...};
  return kind < sizeof...(A) ? kernels[kind] : nullptr;
}

}  // namespace

AloneKernel FindAloneKernel(const Step& step) { return FindIn(Operations(), step.kind); }

}  // namespace kinglet::cuda
