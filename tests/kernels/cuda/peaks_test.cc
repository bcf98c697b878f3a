// Peak rates against those on NVIDIA's data sheets.
#include "kernels/cuda/peaks.h"

#include <gtest/gtest.h>

namespace kinglet::cuda::peaks_test {
namespace {

struct DataSheet {
  const char* name;
  DeviceRates rates;
  double gigabytes;        // a second
  double tera_operations;  // dense, of 8-bit integers; a multiply-add is two
};

TEST(CudaPeaks, AreThePublishedOnes) {
  const DataSheet sheets[] = {
      {"A100 40GB", {8, 0, 108, 1'410'000, 1'215'000, 5120}, 1555, 624},
      {"A10", {8, 6, 72, 1'695'000, 6'251'000, 384}, 600, 250},
      {"L4", {8, 9, 58, 2'040'000, 6'251'000, 192}, 300, 242},
      {"H100 SXM", {9, 0, 132, 1'830'000, 2'619'000, 5120}, 3350, 1979},
  };
  for (const DataSheet& sheet : sheets) {
    const DevicePeaks peaks = PeaksOf(sheet.rates);
    EXPECT_NEAR(peaks.bytes_per_second * 1e-9, sheet.gigabytes, 0.005 * sheet.gigabytes)
        << sheet.name;
    EXPECT_NEAR(2 * peaks.byte_products_per_second * 1e-12, sheet.tera_operations,
                0.005 * sheet.tera_operations)
        << sheet.name;
  }
}

TEST(CudaPeaks, AreUnknownWhereNothingIsPublishedOrTensorCoresRest) {
  // T4: 320 gigabytes a second. The kernels do not use its tensor cores.
  const DevicePeaks old = PeaksOf({7, 5, 40, 1'590'000, 5'001'000, 256});
  EXPECT_NEAR(old.bytes_per_second, 320e9, 1e9);
  EXPECT_EQ(old.byte_products_per_second, 0);
  EXPECT_EQ(PeaksOf({99, 0, 1000, 1'000'000, 0, 0}).byte_products_per_second, 0);
  EXPECT_EQ(PeaksOf({99, 0, 1000, 1'000'000, 0, 0}).bytes_per_second, 0);
}

}  // namespace
}  // namespace kinglet::cuda::peaks_test
