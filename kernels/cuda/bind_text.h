// Binds a plan for given tokens (text.h).
#ifndef KINGLET_KERNELS_CUDA_BIND_TEXT_H_
#define KINGLET_KERNELS_CUDA_BIND_TEXT_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/backend.h"
#include "kernels/cuda/node.h"
#include "kernels/cuda/text.h"
#include "kernels/plan.h"

namespace kinglet::cuda {

// The plan with rings that have `tokens` more slots, where vectors that every token writes
// completely are a token's own. Nothing if tokens cannot run together: a token reads results of the
// token before but by attention and by the neural cache, a window restarts, tokens are masked, or
// the plan keeps rows of a DeFINE unit or has an encoder or a classifier.
std::optional<Plan> TextPlanOf(const Plan& plan, uint32_t tokens);

// The nodes of a context with a StoreOwnRow before each attention. An AttendTokens takes as many
// tokens together as `most_shared_bytes` of a thread block allow.
std::vector<Node> WithStores(const std::vector<Node>& nodes, uint64_t most_shared_bytes);

// What MoveState copies.
std::vector<MovedState> MovedStates(const Plan& plan, const BufferLayout& layout,
                                    const BufferLayout& of_text);

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_BIND_TEXT_H_
