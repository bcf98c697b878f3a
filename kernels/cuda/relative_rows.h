// The position rows of relative attention (kernels/op.h, RelativeRows). The device computes them
// once, when a plan is bound.
#ifndef KINGLET_KERNELS_CUDA_RELATIVE_ROWS_H_
#define KINGLET_KERNELS_CUDA_RELATIVE_ROWS_H_

#include "kernels/cuda/attention.h"
#include "kernels/cuda/bind.h"

namespace kinglet::cuda {

// For distances 0 .. op.Count(window) - 1:
//
//   row of head h    = projection of h * R(distance), R being the row of sinusoids
//   constant of h    = (position_bias - content_bias of h) . row
//
// Both are RealProducts, so the sums follow rule 4 of docs/NUMERICS.md as the reference's do.
Result<PositionRows> MakeRelativeRows(const RelativeRows& op, uint32_t heads, uint32_t key_size,
                                      uint32_t window, Binder& binder);

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_RELATIVE_ROWS_H_
