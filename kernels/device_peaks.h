// The most that a device can do in a second, for comparison with the time of a kernel. C++17.
#ifndef KINGLET_KERNELS_DEVICE_PEAKS_H_
#define KINGLET_KERNELS_DEVICE_PEAKS_H_

namespace kinglet {

struct DevicePeaks {
  double bytes_per_second = 0;          // of its memory; 0: unknown, here and below
  double byte_products_per_second = 0;  // on its tensor cores, each with its addition
};

}  // namespace kinglet

#endif  // KINGLET_KERNELS_DEVICE_PEAKS_H_
