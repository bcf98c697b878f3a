#include "kernels/cuda/peaks.h"

namespace kinglet::cuda {
namespace {

// Products of two bytes per clock on the tensor cores of one multiprocessor.
int ByteProductsPerClock(int major, int minor) {
  switch (major * 10 + minor) {
    case 80:
    case 87:
      return 2048;
    case 86:
    case 89:
      return 1024;
    case 90:
      return 4096;
    default:
      return 0;
  }
}

}  // namespace

DevicePeaks PeaksOf(const DeviceRates& rates) {
  DevicePeaks peaks;
  peaks.bytes_per_second = 2.0 * 1000 * rates.memory_clock_khz * rates.memory_bus_bits / 8;
  peaks.byte_products_per_second = 1000.0 * rates.clock_khz * rates.multiprocessors *
                                   ByteProductsPerClock(rates.major, rates.minor);
  return peaks;
}

}  // namespace kinglet::cuda
