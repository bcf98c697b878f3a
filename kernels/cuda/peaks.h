// A CUDA device's peaks from what its driver says about it. C++17.
#ifndef KINGLET_KERNELS_CUDA_PEAKS_H_
#define KINGLET_KERNELS_CUDA_PEAKS_H_

#include "kernels/device_peaks.h"

namespace kinglet::cuda {

struct DeviceRates {
  int major = 0, minor = 0;  // compute capability
  int multiprocessors = 0;
  int clock_khz = 0;  // the highest
  int memory_clock_khz = 0;
  int memory_bus_bits = 0;
};

// Memory moves two words a clock. Of tensor cores: what is published of a dense product of bytes by
// devices of that compute capability; 0 where nothing is known here, and where the kernels use none
// (below 8.0).
DevicePeaks PeaksOf(const DeviceRates& rates);

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_PEAKS_H_
