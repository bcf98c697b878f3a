// Logits that are not kept.
//
// A cluster of the softmax has a logit for each of its tokens, 242,735 in the last tail of the best
// MicroNet. The normaliser needs every one of them once, and then most queries read few: the score
// of a token reads one. To write and read the others would be a seventh of the memory traffic. So
// the kernel of the product that makes the logits sums each tile of them while the tile is in
// the first-level cache (kernels/cpu/logit_tiles.h), and a frame states where the logits go
// afterwards (LogitsPlace):
//
//   in their buffer  as the results of every other node. All kernels can do that.
//   nowhere          for queries that read few logits. The kernel makes those again when they are
//                    read (LogitMaker::make): from the same operands in the same order, so with the
//                    same bits.
//   in the answer    for a query of the probabilities of all tokens: in the caller's memory, where
//                    they become log-probabilities in place. A call that fails leaves that memory
//                    unchanged, so the logits are written once nothing can fail any more: the last
//                    cluster alone is computed there (ClusterMadeInAnswer), after all other work;
//                    its kernel has proved that the logits are finite (LogitMaker::are_finite), and
//                    is not cancelled, for which it must be short.
//
// A kernel without a LogitMaker stores its logits in their buffer whatever the frame states.
//
// Distribution (runtime/queries/distribution.h) chooses the place for each query and remembers
// which clusters of a stream are without logits. runtime/accounting/traffic.cc counts the bytes of
// each place. A device keeps all logits in its own memory.
#ifndef KINGLET_KERNELS_LOGITS_H_
#define KINGLET_KERNELS_LOGITS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "kernels/plan.h"

namespace kinglet {

struct Kernel;
struct StreamFrame;

// Where a kernel with a LogitMaker puts the logits of a frame. Equal in all frames of a call, but
// for the address.
struct LogitsPlace {
  bool is_nowhere = false;
  // All logits of the cluster, at any address. nullptr: not in the answer.
  float* answer = nullptr;

  bool is_buffer() const { return !is_nowhere && answer == nullptr; }
};
inline constexpr LogitsPlace kLogitsInBuffer = {};
inline constexpr LogitsPlace kLogitsNowhere = {.is_nowhere = true};

// What a kernel can do for logits that are not kept. Null functions: it cannot.
struct LogitMaker {
  // Stores logits [first, first + count) of a frame on which the kernel ran, in their buffer or in
  // the answer.
  std::function<void(const StreamFrame& frame, uint64_t first, uint64_t count)> make = {};
  // Whether every logit of the frame is certain to be finite. Asked before the kernel runs, once
  // the nodes before it have run on the frame.
  std::function<bool(const StreamFrame& frame)> are_finite = {};

  explicit operator bool() const { return bool{make}; }
};

// The node of `nodes` whose kernel has a LogitMaker; nullopt if there is none.
std::optional<size_t> MakerOfLogits(std::span<const Kernel> kernels, NodeRange nodes);
// The last cluster whose logits can be made in the answer; nullopt if there is none.
std::optional<size_t> ClusterMadeInAnswer(const Plan& plan, std::span<const Kernel> kernels);

}  // namespace kinglet

#endif  // KINGLET_KERNELS_LOGITS_H_
