// Peak rates of a CUDA device, from the properties that its driver reports. C++17.
#ifndef KINGLET_KERNELS_CUDA_PEAKS_H_
#define KINGLET_KERNELS_CUDA_PEAKS_H_

#include "kernels/device_peaks.h"

namespace kinglet::cuda {

struct DeviceRates {
  int major = 0, minor = 0;  // compute capability
  int multiprocessors = 0;
  int clock_khz = 0;  // the maximum
  int memory_clock_khz = 0;
  int memory_bus_bits = 0;
};

// Memory makes two transfers per clock. The rate of the tensor cores is the published rate of dense
// 8-bit products for the compute capability. The rate is 0 if this function does not know it, and
// below 8.0, where the kernels use no tensor cores.
DevicePeaks PeaksOf(const DeviceRates& rates);

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_PEAKS_H_
