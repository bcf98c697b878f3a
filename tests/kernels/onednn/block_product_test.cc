// A block of rows times a tile of vectors, against a sum in double.
#include "kernels/onednn/block_product.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>

#include "kernels/cpu/panels.h"

namespace kinglet::block_product_test {
namespace {

using cpu::AlignedVector;
using onednn::BlockProduct;
using onednn::kBlockRows;
using onednn::kTileVectors;

float NumberOf(uint64_t i) { return static_cast<float>(i * 31 % 127) / 64 - 1; }

TEST(OnednnBlock, EqualsASumInDouble) {
  for (const uint64_t cols : {1, 16, 33, 100, 512, 1500}) {
    const auto product = BlockProduct::Of(cols);
    ASSERT_NE(product, nullptr) << cols;
    AlignedVector<float> rows(kBlockRows * cols), x(kTileVectors * cols);
    AlignedVector<float> y(kTileVectors * kBlockRows);
    for (uint64_t i = 0; i < rows.size(); ++i) rows[i] = NumberOf(i);
    for (uint64_t i = 0; i < x.size(); ++i) x[i] = NumberOf(i * i + 5);
    AlignedVector<std::byte> weight(product->weight_bytes()), scratch(product->scratch_bytes());
    product->LayOut(rows.data(), weight.data());
    BlockProduct::Run(*product, scratch.data()).Multiply(weight.data(), x.data(), y.data());
    for (size_t v = 0; v < kTileVectors; ++v) {
      for (size_t r = 0; r < kBlockRows; ++r) {
        double sum = 0, magnitude = 0;
        for (uint64_t c = 0; c < cols; ++c) {
          const double term = double{rows[r * cols + c]} * x[v * cols + c];
          sum += term;
          magnitude += std::abs(term);
        }
        ASSERT_NEAR(y[v * kBlockRows + r], sum, 1e-6 * magnitude + 1e-12) << cols << " " << v;
      }
    }
  }
}

TEST(OnednnBlock, LeavesTheCallersThreadsAsTheyWere) {
  const int before = omp_get_max_threads();
  omp_set_num_threads(3);
  const auto product = BlockProduct::Of(64);
  ASSERT_NE(product, nullptr);
  EXPECT_EQ(omp_get_max_threads(), 3);
  AlignedVector<std::byte> scratch(product->scratch_bytes());
  {
    const BlockProduct::Run run(*product, scratch.data());
    EXPECT_EQ(omp_get_max_threads(), 1);
  }
  EXPECT_EQ(omp_get_max_threads(), 3);
  omp_set_num_threads(before);
}

TEST(OnednnBlock, SaysWhatItRuns) {
  const auto product = BlockProduct::Of(64);
  ASSERT_NE(product, nullptr);
  EXPECT_EQ(product->Describe().find("oneDNN "), 0u) << product->Describe();
}

}  // namespace
}  // namespace kinglet::block_product_test
