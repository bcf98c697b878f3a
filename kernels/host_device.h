// KINGLET_HOST_DEVICE marks a function that nvcc compiles for the device as well. Headers that use
// it are C++17.
#ifndef KINGLET_KERNELS_HOST_DEVICE_H_
#define KINGLET_KERNELS_HOST_DEVICE_H_

#if defined(__CUDACC__)
#define KINGLET_HOST_DEVICE __host__ __device__
#else
#define KINGLET_HOST_DEVICE
#endif

#endif  // KINGLET_KERNELS_HOST_DEVICE_H_
