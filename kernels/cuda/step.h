// What a device runs: a plan's steps as plain values, whose operands are places in a lane's memory
// and addresses of weights on the device. C++17.
//
// An operation is a struct of arguments and a function Run(arguments, work); most operations of a
// plan are one, some are several, each beginning when the one before has ended. A step's units are
// independent of each other: any block may run any of them, in any order.
#ifndef KINGLET_KERNELS_CUDA_STEP_H_
#define KINGLET_KERNELS_CUDA_STEP_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/cuda/block.h"

namespace kinglet::cuda {

// One stream's memory on the device, and the token that it processes. Not owned.
struct Lane {
  std::byte* scratch;
  std::byte* state;
  std::byte* temporary;  // what passes from one step to the next and is no buffer of the plan
  uint64_t position;
  uint64_t source_length;
  uint32_t token;
};

enum class Space : uint32_t { kScratch, kState, kTemporary };

// Where a vector begins, in bytes from the beginning of a lane's memory of that kind.
struct Place {
  Space space = Space::kScratch;
  uint64_t offset = 0;
  KINGLET_HOST_DEVICE Place Plus(uint64_t bytes) const { return {space, offset + bytes}; }
};

// A vector of a lane: reals, or codes of 16 bits with what one of them stands for.
struct Vector {
  Place place;
  uint32_t count = 0;
  bool codes = false;
  bool has_own_step = false;  // the lane's, at step_place
  float step = 1.0f;
  Place step_place;
};

// What a block is to do: one unit of a step, for some lanes.
struct Work {
  const Lane* lanes;
  uint32_t lane_count;
  uint32_t unit;
  const Block& block;

  template <class T>
  KINGLET_HOST_DEVICE T* At(const Lane& lane, const Place& place) const {
    std::byte* const base = place.space == Space::kScratch
                                ? lane.scratch
                                : (place.space == Space::kState ? lane.state : lane.temporary);
    return reinterpret_cast<T*>(base + place.offset);
  }
  // What a code of the vector stands for.
  KINGLET_HOST_DEVICE float StepOf(const Lane& lane, const Vector& x) const {
    return x.has_own_step ? *At<float>(lane, x.step_place) : x.step;
  }
  // Element i of a vector as a real.
  KINGLET_HOST_DEVICE float Real(const Lane& lane, const Vector& x, uint64_t i) const {
    return x.codes ? static_cast<float>(At<int16_t>(lane, x.place)[i]) * StepOf(lane, x)
                   : At<float>(lane, x.place)[i];
  }
};

// What rounds reals to codes (kernels/ref/quantise.h).
struct Rounding {
  float max_abs, step;
  KINGLET_HOST_DEVICE int16_t operator()(float x) const {
    const float clamped = x >= -max_abs ? (x <= max_abs ? x : max_abs) : -max_abs;
    return static_cast<int16_t>(rintf(clamped / step));
  }
};

// Units of a step whose operation takes one lane at a time: `each` for every lane.
struct LaneUnit {
  uint32_t lane, part;
  KINGLET_HOST_DEVICE LaneUnit(const Work& work, uint32_t each)
      : lane(work.unit / each), part(work.unit % each) {}
};

// Of operations whose unit i is all of lane i: the block that runs it goes on to the lane's next
// such step without waiting for other blocks.
struct ByLane {
  static constexpr bool kByLane = true;
  KINGLET_HOST_DEVICE uint32_t Units(uint32_t lanes, uint32_t) const { return lanes; }
  KINGLET_HOST_DEVICE uint64_t SharedBytes() const { return 0; }
};

// A token takes part in a step that has such a range only if it lies in it.
struct TokenRange {
  uint32_t first = 0, size = UINT32_MAX;
  KINGLET_HOST_DEVICE bool Contains(uint32_t token) const { return token - first < size; }
};

// Lanes that keep a device busy with steps of their own: an operation that goes through their
// memory then has a kernel of its own, with no more registers than it needs, so that more blocks of
// it hide each other's waits.
inline constexpr uint32_t kManyLanes = 64;

// One of the argument structs, by its number in the list of them (operations.h).
struct Step {
  static constexpr size_t kMaxBytes = 256, kAlignment = 8;
  uint32_t kind;
  bool by_lane;  // ByLane's
  // For so many lanes or more it is a launch of its own, by a kernel of its own.
  uint32_t alone_from_lanes;
  alignas(kAlignment) unsigned char arguments[kMaxBytes];
};

template <class... A>
struct ArgumentList {};

template <class T>
KINGLET_HOST_DEVICE T ArgumentsOf(const Step& step) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= Step::kMaxBytes);
  static_assert(alignof(T) <= Step::kAlignment);
#if KINGLET_CUDA_ON_DEVICE
  // nvcc makes of a copy of bytes a load of each byte, whatever it is told of their alignment.
  return *reinterpret_cast<const T*>(step.arguments);
#else
  T arguments;
  memcpy(&arguments, step.arguments, sizeof arguments);
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
template <class... A, class F>
KINGLET_HOST_DEVICE void WithArguments(ArgumentList<A...>, const Step& step, const F& f) {
  uint32_t kind = 0;
  ((step.kind == kind++ ? f(ArgumentsOf<A>(step)) : void()), ...);
}
template <class T, class = void>
constexpr bool kByLane = false;
template <class T>
constexpr bool kByLane<T, std::enable_if_t<T::kByLane>> = true;
template <class T, class = void>
constexpr uint32_t kAloneFromLanes = UINT32_MAX;
template <class T>
constexpr uint32_t kAloneFromLanes<T, std::enable_if_t<(T::kAloneFromLanes > 0)>> =
    T::kAloneFromLanes;
}  // namespace internal

// Whether blocks must wait for each other between two steps that follow one another.
KINGLET_HOST_DEVICE inline bool MustWait(const Step& before, const Step& after) {
  return !before.by_lane || !after.by_lane;
}

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_STEP_H_
