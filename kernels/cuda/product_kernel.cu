#include "kernels/cuda/alone_kernel.cuh"
#include "kernels/cuda/product.h"

namespace kinglet::cuda {

AloneKernel IntegerProductKernel() { return RunAlone<IntegerProduct>; }

}  // namespace kinglet::cuda
