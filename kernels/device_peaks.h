// Peak rates of a device, with which measured times are compared. C++17.
#ifndef KINGLET_KERNELS_DEVICE_PEAKS_H_
#define KINGLET_KERNELS_DEVICE_PEAKS_H_

namespace kinglet {

struct DevicePeaks {
  double bytes_per_second = 0;          // of device memory; 0 if unknown, here and below
  double byte_products_per_second = 0;  // multiply-adds of two bytes on the tensor cores
};

}  // namespace kinglet

#endif  // KINGLET_KERNELS_DEVICE_PEAKS_H_
