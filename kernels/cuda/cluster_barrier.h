// Which launches may have a thread block cluster, whose blocks wait for each other in hardware.
#ifndef KINGLET_KERNELS_CUDA_CLUSTER_BARRIER_H_
#define KINGLET_KERNELS_CUDA_CLUSTER_BARRIER_H_

namespace kinglet::cuda {

// Whether a kernel's blocks can wait for their cluster. `device_major`: the device's compute
// capability. `ptx_version`: cudaFuncAttributes::ptxVersion, the virtual architecture that the
// kernel's source was compiled for (90 for compute_90). The device alone does not decide it: code
// compiled for 8.0 also runs on a device of 9.0, by way of PTX, but its source was compiled without
// the wait.
constexpr bool HasClusterBarrier(int device_major, int ptx_version) {
  return device_major >= 9 && ptx_version >= 90;
}

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_CLUSTER_BARRIER_H_
