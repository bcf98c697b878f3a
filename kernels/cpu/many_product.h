// Products of real panels with the vectors of many lanes by code other than ours
// (kernels/onednn), whose sums have an order of their own.
#ifndef KINGLET_KERNELS_CPU_MANY_PRODUCT_H_
#define KINGLET_KERNELS_CPU_MANY_PRODUCT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "kernels/backend.h"
#include "kernels/cpu/panels.h"
#include "kernels/cpu/vector.h"
#include "kernels/work_memory.h"

namespace kinglet::cpu {

// Of one matrix.
class ManyProduct {
 public:
  // It serves frames whose batch has as many vectors or more, however few of them there are.
  static constexpr uint64_t kLeastVectors = 8;
  static constexpr size_t kMost = 128;  // vectors of a call

  ManyProduct() = default;
  ManyProduct(const ManyProduct&) = delete;
  ManyProduct& operator=(const ManyProduct&) = delete;
  virtual ~ManyProduct() = default;

  // y = finish(weight * x) for each vector, in the rows of these panels. The bits depend on the
  // matrix and on x alone. `memory` has parts of WorkBytes() bytes. Any number of threads may call
  // it at the same time. Throws std::bad_alloc, and nothing else. REQUIRES: 1 to kMost vectors;
  // panels.begin is a multiple of PanelsTogether(); each y and the finish begin at the first row of
  // these panels.
  virtual void Multiply(PanelRange panels, std::span<const RealVector> vectors,
                        const Finish& finish, WorkMemory& memory) const = 0;
  virtual size_t PanelsTogether() const = 0;  // that it multiplies at once
  virtual uint64_t WorkBytes() const = 0;
  virtual MemoryRange Memory() const = 0;  // of the weights as it lays them out
};

class ManyProducts {
 public:
  ManyProducts() = default;
  ManyProducts(const ManyProducts&) = delete;
  ManyProducts& operator=(const ManyProducts&) = delete;
  virtual ~ManyProducts() = default;

  // Of a matrix whose contents may come later, before LayOut; null where our own product serves it
  // best. Throws std::bad_alloc.
  virtual std::shared_ptr<const ManyProduct> Of(const std::shared_ptr<const Panels>& weight) = 0;
  // Lays out the weights of all products made so far. Throws std::bad_alloc.
  virtual void LayOut() = 0;
};

}  // namespace kinglet::cpu

#endif  // KINGLET_KERNELS_CPU_MANY_PRODUCT_H_
