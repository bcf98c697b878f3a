// Products of real panels with many vectors by code other than ours (kernels/onednn), whose sums
// have an order of their own.
#ifndef KINGLET_KERNELS_CPU_MANY_PRODUCT_H_
#define KINGLET_KERNELS_CPU_MANY_PRODUCT_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "kernels/cpu/vector.h"
#include "kernels/work_memory.h"

namespace kinglet::cpu {

// Of one matrix. Empty: our own product serves it best.
struct ManyProduct {
  // The most vectors of one call.
  static constexpr size_t kMost = 64;

  // Whether it serves steps that never have more vectors than this.
  std::function<bool(uint32_t vectors)> serves;
  // y = finish(weight * x) for each vector, in the rows of these panels. `vectors_at_most` is what
  // `serves` was true for; the bits depend on it, on the matrix and on x, and on nothing else.
  // Throws std::bad_alloc. REQUIRES: at most kMost vectors.
  std::function<void(const RealPanels& weight, std::span<const RealVector> vectors,
                     uint32_t vectors_at_most, const Finish& finish, WorkMemory& memory)>
      multiply;
  uint64_t work_bytes = 0;  // of a part of `memory`

  explicit operator bool() const { return multiply != nullptr; }
};

// Makes the product of a matrix when its step is bound. Throws std::bad_alloc.
using ManyProducts = std::function<ManyProduct(uint64_t rows, uint64_t cols)>;

}  // namespace kinglet::cpu

#endif  // KINGLET_KERNELS_CPU_MANY_PRODUCT_H_
