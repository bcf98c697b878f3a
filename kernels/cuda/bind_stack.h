// Finds the layers of a plan that DecoderStack can run as one launch, and binds them.
#ifndef KINGLET_KERNELS_CUDA_BIND_STACK_H_
#define KINGLET_KERNELS_CUDA_BIND_STACK_H_

#include <optional>

#include "kernels/cuda/bind.h"
#include "kernels/cuda/device.h"
#include "kernels/plan.h"

namespace kinglet::cuda {

// A node of a cluster that does the work of these plan nodes.
struct BoundStack {
  NodeRange nodes;
  Node node;
};

// The first layers of the plan's context that are alike: quantised, with a norm before attention
// and inner units (NormOrder::kPre), ReLU, keys and values in 9 bits, and scores with a column of
// each slot. Nothing if the context has no such layers, if a sum may need more than 32 bits, or if
// they do not fit the device's clusters.
Result<std::optional<BoundStack>> BindStack(Binder& binder, const Device& device);

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_BIND_STACK_H_
