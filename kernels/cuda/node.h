// Device nodes: what a GPU runs, as plain values. C++17.
//
// A plan node (kernels/plan.h) becomes one device node or several, run one after the other. A
// device node has a kind and a struct of arguments; operands are locations in a lane's memory and
// addresses of weights in the device's memory. Each kind of node T has
//
//   T::WorkItems(lanes, warps)   how many work items the node has for `lanes` lanes, on
//                                thread blocks of `warps` warps
//   T::SharedBytes()             the shared memory that a thread block needs
//   Run(arguments, work)         runs one work item, by all threads of one thread block
//
// Work items are independent of each other: any thread block may run any of them, in any order. A
// node of a cluster (DecoderStack) has a cluster of thread blocks for each lane instead. A lane is
// the slot of one stream in a session's batch, here and everywhere.
#ifndef KINGLET_KERNELS_CUDA_NODE_H_
#define KINGLET_KERNELS_CUDA_NODE_H_

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/cuda/block.h"
#include "kernels/ring.h"

namespace kinglet::cuda {

// The memory of one lane on the device, and the token that its stream processes now. Not owned.
struct Lane {
  std::byte* scratch;
  std::byte* state;
  std::byte* temporary;  // values for the next device node, outside the plan's buffers
  uint64_t position;
  uint64_t source_length;
  uint32_t token;
  // Of a model that spells words (StreamFrame): the word's number, and its bytes on the device.
  uint32_t word, letters;
  uint32_t asked;  // the token whose log-probability a query asks for
  const uint8_t* spelling;
  // Of a token of a text, whose streams share rings (text.h): rows before the stream's first.
  uint64_t shift = 0;

  // The row that the token writes in rings.
  KINGLET_HOST_DEVICE uint64_t Row() const { return position + shift; }
};

enum class Space : uint32_t { kScratch, kState, kTemporary };

// An address within a lane: `offset` bytes into the lane's memory of that kind.
struct Place {
  Space space = Space::kScratch;
  uint64_t offset = 0;
  KINGLET_HOST_DEVICE Place Plus(uint64_t bytes) const { return {space, offset + bytes}; }
};

// A vector of a lane: floats, or 16-bit codes, whose values are code * scale.
struct Vector {
  Place place;
  uint32_t count = 0;
  bool codes = false;
  bool has_own_scale = false;  // each lane has a scale of its own, at scale_place
  float scale = 1.0f;
  Place scale_place;
};

// The ring slots of a neural cache's pairs, the `pairs` rows before row `end`. A ring of `capacity`
// slots has them in any order, a longer one from the oldest on.
struct PairSlots {
  uint32_t first, ring;
  KINGLET_HOST_DEVICE PairSlots(uint64_t end, uint32_t pairs, uint32_t capacity,
                                uint32_t ring_slots)
      : first(ring_slots == capacity ? 0
                                     : static_cast<uint32_t>(RingSlot(end - pairs, ring_slots))),
        ring(ring_slots) {}
  KINGLET_HOST_DEVICE uint32_t Of(uint32_t pair) const {
    const uint32_t slot = first + pair;
    return slot < ring ? slot : slot - ring;
  }
};

// What a thread block works on: one work item of a node for the lanes [0, lane_count).
struct Work {
  const Lane* lanes;
  uint32_t lane_count;
  uint32_t item;
  const Block& block;

  template <class T>
  KINGLET_HOST_DEVICE T* At(const Lane& lane, const Place& place) const {
    std::byte* const base = place.space == Space::kScratch
                                ? lane.scratch
                                : (place.space == Space::kState ? lane.state : lane.temporary);
    return reinterpret_cast<T*>(base + place.offset);
  }
  // The scale of a vector of codes.
  KINGLET_HOST_DEVICE float ScaleOf(const Lane& lane, const Vector& x) const {
    return x.has_own_scale ? *At<float>(lane, x.scale_place) : x.scale;
  }
  // Element i of a vector as a real.
  KINGLET_HOST_DEVICE float Real(const Lane& lane, const Vector& x, uint64_t i) const {
    return x.codes ? static_cast<float>(At<int16_t>(lane, x.place)[i]) * ScaleOf(lane, x)
                   : At<float>(lane, x.place)[i];
  }
};

// Rounds floats to codes (kernels/ref/quantise.h).
struct Rounding {
  float max_abs, scale;
  KINGLET_HOST_DEVICE int16_t operator()(float x) const {
    const float clamped = x >= -max_abs ? (x <= max_abs ? x : max_abs) : -max_abs;
    return static_cast<int16_t>(rintf(clamped / scale));
  }
};

// Calls f with a zero of the vector's element type: int16_t for codes, float for floats.
template <class F>
KINGLET_HOST_DEVICE void WithElements(bool codes, const F& f) {
  if (codes) {
    f(int16_t{0});
  } else {
    f(0.0f);
  }
}

// Which lane, and which part of the lane's work, a work item is, if each lane has `each` work
// items.
struct LaneItem {
  uint32_t lane, part;
  KINGLET_HOST_DEVICE LaneItem(const Work& work, uint32_t each)
      : lane(work.item / each), part(work.item % each) {}
};

// Base of nodes whose work item i is all the work of lane i.
struct ByLane {
  KINGLET_HOST_DEVICE uint32_t WorkItems(uint32_t lanes, uint32_t) const { return lanes; }
  KINGLET_HOST_DEVICE uint64_t SharedBytes() const { return 0; }
};

// A node with a token range works only for lanes whose token lies in the range.
struct TokenRange {
  uint32_t first = 0, size = UINT32_MAX;
  KINGLET_HOST_DEVICE bool Contains(uint32_t token) const { return token - first < size; }
};

// A device node: the arguments of kind number `kind` in the list Operations (operations.h).
struct Node {
  static constexpr size_t kMaxBytes = 256, kAlignment = 8;
  uint32_t kind;
  uint32_t cluster_blocks;  // of each lane's cluster (cluster.h); 0 for any other node
  alignas(kAlignment) unsigned char arguments[kMaxBytes];
};

template <class... A>
struct ArgumentList {};

template <class T>
KINGLET_HOST_DEVICE T ArgumentsOf(const Node& node) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= Node::kMaxBytes);
  static_assert(alignof(T) <= Node::kAlignment);
#if KINGLET_CUDA_ON_DEVICE
  // nvcc turns a memcpy into one load per byte, whatever alignment the code promises.
  return *reinterpret_cast<const T*>(node.arguments);
#else
  T arguments;
  memcpy(&arguments, node.arguments, sizeof arguments);
  return arguments;
#endif
}

namespace internal {
template <class T, class... A>
KINGLET_HOST_DEVICE constexpr uint32_t KindIn(ArgumentList<A...>) {
  uint32_t kind = 0, found = UINT32_MAX;
  ((std::is_same_v<T, A> ? found = kind++ : kind++), ...);
  return found;
}
// Calls f with the arguments of a node, on the host.
template <class... A, class F>
void WithArguments(ArgumentList<A...>, const Node& node, const F& f) {
  uint32_t kind = 0;
  ((node.kind == kind++ ? f(ArgumentsOf<A>(node)) : void()), ...);
}
template <class T, class = void>
constexpr bool kOfCluster = false;
template <class T>
constexpr bool kOfCluster<T, std::enable_if_t<T::kOfCluster>> = true;
}  // namespace internal

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_NODE_H_
