// The rows of relative attention (kernels/op.h, RelativeRows), made by the device when bound.
#ifndef KINGLET_KERNELS_CUDA_RELATIVE_ROWS_H_
#define KINGLET_KERNELS_CUDA_RELATIVE_ROWS_H_

#include "kernels/cuda/attention.h"
#include "kernels/cuda/bind.h"

namespace kinglet::cuda {

Result<PositionRows> MakeRelativeRows(const RelativeRows& op, uint32_t heads, uint32_t key_size,
                                      uint32_t window, Binder& binder);

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_RELATIVE_ROWS_H_
