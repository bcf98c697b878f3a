// Products of real panels with the vectors of many lanes by another library's code
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

// A product with one matrix.
class ManyProduct {
 public:
  // The product serves frames whose sessions have at least this many vectors (BatchInfo), even if a
  // call has fewer frames.
  static constexpr uint64_t kLeastVectors = 8;
  static constexpr size_t kMost = 128;  // vectors in one call

  ManyProduct() = default;
  ManyProduct(const ManyProduct&) = delete;
  ManyProduct& operator=(const ManyProduct&) = delete;
  virtual ~ManyProduct() = default;

  // y = finish(weight * x) for each vector, in the rows of these panels. The bits depend on the
  // matrix and on x alone. `memory` has parts of WorkBytes() bytes. Any number of threads may call
  // Multiply at the same time. Throws nothing but std::bad_alloc. REQUIRES: 1 to kMost vectors;
  // panels.begin is a multiple of PanelsTogether(); each y and the finish begin at the first row of
  // these panels.
  virtual void Multiply(PanelRange panels, std::span<const RealVector> vectors,
                        const Finish& finish, WorkMemory& memory) const = 0;
  virtual size_t PanelsTogether() const = 0;  // that Multiply multiplies at once
  virtual uint64_t WorkBytes() const = 0;
  virtual MemoryRange Memory() const = 0;  // of the weights in the product's own layout
};

class ManyProducts {
 public:
  ManyProducts() = default;
  ManyProducts(const ManyProducts&) = delete;
  ManyProducts& operator=(const ManyProducts&) = delete;
  virtual ~ManyProducts() = default;

  // A product with a matrix whose contents may come later, before LayOut. Null if our own product
  // is faster. Throws std::bad_alloc.
  virtual std::shared_ptr<const ManyProduct> Of(const std::shared_ptr<const Panels>& weight) = 0;
  // Lays out the weights of all products made so far. Throws std::bad_alloc.
  virtual void LayOut() = 0;
};

}  // namespace kinglet::cpu

#endif  // KINGLET_KERNELS_CPU_MANY_PRODUCT_H_
