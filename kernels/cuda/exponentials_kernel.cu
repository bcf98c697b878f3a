#include "kernels/cuda/alone_kernel.cuh"
#include "kernels/cuda/cluster_products.h"

namespace kinglet::cuda {

AloneKernel ExponentialsOfProductsKernel() { return RunAlone<ExponentialsOfProducts>; }

}  // namespace kinglet::cuda
