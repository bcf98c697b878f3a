#include "kernels/logits.h"

#include "kernels/backend.h"

namespace kinglet {
namespace {

// A product that writes the answer runs to its end, because a failed call leaves the answer
// unchanged. This many chunks, 256 MiB of weights, take less than 100 ms.
constexpr size_t kMostChunksInAnswer = 16'384;

size_t ChunksOf(const Kernel& kernel) {
  size_t chunks = 0;
  for (const Phase& phase : kernel.phases) chunks += phase.chunks;
  return chunks;
}

}  // namespace

std::optional<size_t> MakerOfLogits(std::span<const Kernel> kernels, NodeRange nodes) {
  for (size_t i = nodes.begin; i < nodes.end; ++i) {
    if (kernels[i].logits) return i;
  }
  return std::nullopt;
}

std::optional<size_t> ClusterMadeInAnswer(const Plan& plan, std::span<const Kernel> kernels) {
  for (size_t index = plan.clusters.size(); index-- > 0;) {
    // Tails need a logit of the head.
    if (index == 0 && plan.clusters.size() > 1) break;
    const std::optional<size_t> maker = MakerOfLogits(kernels, plan.clusters[index].nodes);
    if (maker && kernels[*maker].logits.are_finite &&
        ChunksOf(kernels[*maker]) <= kMostChunksInAnswer) {
      return index;
    }
  }
  return std::nullopt;
}

}  // namespace kinglet
