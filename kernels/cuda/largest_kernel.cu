#include "kernels/cuda/alone_kernel.cuh"
#include "kernels/cuda/cluster_products.h"

namespace kinglet::cuda {

AloneKernel LargestOfProductsKernel() { return RunAlone<LargestOfProducts>; }

}  // namespace kinglet::cuda
