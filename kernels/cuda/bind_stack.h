// Finds the layers of a plan that need few launches, and binds them: DecoderStack (decoder_stack.h)
// and BetweenAttentions (between_attentions.h).
#ifndef KINGLET_KERNELS_CUDA_BIND_STACK_H_
#define KINGLET_KERNELS_CUDA_BIND_STACK_H_

#include <optional>
#include <vector>

#include "kernels/cuda/bind.h"
#include "kernels/cuda/device.h"
#include "kernels/plan.h"

namespace kinglet::cuda {

// Device nodes that do the work of these plan nodes.
struct BoundStack {
  NodeRange nodes;
  std::optional<Node> few;  // for few lanes: all layers (DecoderStack)
  std::vector<Node> many;   // for many lanes: attentions, and what is between them; may be empty
};

// The first layers of the plan's context that are quantised, with a norm before attention and inner
// units (NormOrder::kPre) and ReLU, where every sum of a product fits 32 bits. For few lanes they
// must be alike, with keys and values in 9 bits and scores with a column of each slot, and fit the
// device's clusters. Nothing if the context has no such layers, or the device
// runs them node by node; for a text only those for many. `bound[i]`: the device nodes of plan node
// i.
Result<std::optional<BoundStack>> BindStack(const std::vector<std::vector<Node>>& bound,
                                            const Device& device, Binder& binder);

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_BIND_STACK_H_
