// The rows of relative attention (kernels/op.h, RelativeRows), equal to those of kernels/ref but
// computed with vector functions.
#ifndef KINGLET_KERNELS_CPU_RELATIVE_ROWS_H_
#define KINGLET_KERNELS_CPU_RELATIVE_ROWS_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "kernels/cpu/bind.h"

namespace kinglet::cpu {

struct RelativeTable {
  size_t rows = 0;                 // the largest distance first, distance 0 last
  AlignedVector<float> keys;       // [rows, heads, key_size]
  AlignedVector<float> constants;  // [rows, heads]: (position bias - content bias) . key

  std::vector<MemoryRange> Memory() const;
};

// Throws std::bad_alloc.
std::shared_ptr<const RelativeTable> MakeRelativeTable(const RelativeRows& op, size_t heads,
                                                       size_t key_size, uint32_t window,
                                                       const BindContext& context);

}  // namespace kinglet::cpu

#endif  // KINGLET_KERNELS_CPU_RELATIVE_ROWS_H_
