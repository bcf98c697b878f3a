// Whether a device's half-precision tensor cores add as half_product.h needs. C++17.
#ifndef KINGLET_KERNELS_CUDA_HALF_CHECK_H_
#define KINGLET_KERNELS_CUDA_HALF_CHECK_H_

namespace kinglet::cuda {

// Compares some 500,000 sums of products up to 2^24 with sums of integers, on the current device,
// in about a millisecond. False also if a call fails.
bool HasExactHalves();

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_HALF_CHECK_H_
