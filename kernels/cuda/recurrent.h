// The element-wise halves of recurrent cells (kernels/op.h, LstmGates, GruGates, RnnGates and
// QrnnGates), and what their first token finds. The matrix products are nodes of their own. C++17.
//
// A thread computes an element of the new state, one rounded operation after the other as
// kernels/op.h writes them. No shared memory.
#ifndef KINGLET_KERNELS_CUDA_RECURRENT_H_
#define KINGLET_KERNELS_CUDA_RECURRENT_H_

#include <cstdint>

#include "kernels/cuda/node.h"
#include "kernels/cuda/vectors.h"
#include "kernels/functions.h"

namespace kinglet::cuda {

// `count` 32-bit words of a lane's state.
struct StateWords {
  uint64_t offset;  // bytes
  uint64_t count;
};

// Makes the vectors that a token leaves for the next one zeros before a stream's first token. Their
// memory may have any contents then. A work item is a lane.
struct ClearForFirstToken : ByLane {
  const StateWords* vectors;  // device memory, [count]
  uint32_t count;
};

KINGLET_HOST_DEVICE inline void Run(const ClearForFirstToken& p, const Work& work) {
  const Lane& lane = work.lanes[work.item];
  if (lane.position != 0) return;
  for (uint32_t n = 0; n < p.count; ++n) {
    const StateWords vector = p.vectors[n];
    auto* const words = work.At<uint32_t>(lane, {Space::kState, vector.offset});
    work.block.ForEach(vector.count, [=](uint64_t i) { words[i] = 0; });
  }
}

// The vectors of a cell: n elements each, or n elements for each gate, gate after gate.
struct Cell : ByElement {
  Place input, recurrent, cell, hidden;
};

struct LstmCell : Cell {};

KINGLET_HOST_DEVICE inline void Run(const LstmCell& p, const Work& work) {
  EachElement(work, p.count, [&](const Lane& lane, uint64_t i) {
    const float* input = work.At<float>(lane, p.input);
    const float* recurrent = work.At<float>(lane, p.recurrent);
    const auto gate = [&](uint64_t index) {
      return input[index * p.count + i] + recurrent[index * p.count + i];
    };
    float& cell = work.At<float>(lane, p.cell)[i];
    const float kept = Sigmoid(gate(1)) * cell;
    const float added = Sigmoid(gate(0)) * Tanh(gate(2));
    const float next = kept + added;
    cell = next;
    work.At<float>(lane, p.hidden)[i] = Sigmoid(gate(3)) * Tanh(next);
  });
}

struct GruCell : Cell {};

KINGLET_HOST_DEVICE inline void Run(const GruCell& p, const Work& work) {
  EachElement(work, p.count, [&](const Lane& lane, uint64_t i) {
    const uint64_t n = p.count;
    const float* input = work.At<float>(lane, p.input);
    const float* recurrent = work.At<float>(lane, p.recurrent);
    float& hidden = work.At<float>(lane, p.hidden)[i];
    const float reset = Sigmoid(input[i] + recurrent[i]);
    const float keep = Sigmoid(input[n + i] + recurrent[n + i]);
    const float scaled = reset * recurrent[2 * n + i];
    const float candidate = Tanh(input[2 * n + i] + scaled);
    const float fresh = (1.0f - keep) * candidate;
    const float kept = keep * hidden;
    hidden = fresh + kept;
  });
}

struct RnnCell : Cell {
  bool relu;
};

KINGLET_HOST_DEVICE inline void Run(const RnnCell& p, const Work& work) {
  EachElement(work, p.count, [&](const Lane& lane, uint64_t i) {
    const float sum = work.At<float>(lane, p.input)[i] + work.At<float>(lane, p.recurrent)[i];
    work.At<float>(lane, p.hidden)[i] = p.relu ? (sum > 0.0f ? sum : 0.0f) : Tanh(sum);
  });
}

// `recurrent` is the product with the previous token's input, if `has_previous`.
struct QrnnCell : Cell {
  bool has_previous;
};

KINGLET_HOST_DEVICE inline void Run(const QrnnCell& p, const Work& work) {
  EachElement(work, p.count, [&](const Lane& lane, uint64_t i) {
    const float* input = work.At<float>(lane, p.input);
    const float* previous = work.At<float>(lane, p.recurrent);
    const auto gate = [&](uint64_t index) {
      const float own = input[index * p.count + i];
      return p.has_previous ? own + previous[index * p.count + i] : own;
    };
    float& cell = work.At<float>(lane, p.cell)[i];
    const float forget = Sigmoid(gate(1));
    const float fresh = forget * Tanh(gate(0));
    const float kept = (1.0f - forget) * cell;
    const float next = fresh + kept;
    cell = next;
    work.At<float>(lane, p.hidden)[i] = Sigmoid(gate(2)) * next;
  });
}

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_RECURRENT_H_
