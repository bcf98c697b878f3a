// SumsOfProducts, which does not store logits, against the nodes for stored
// logits: full and partial tiles.
#include "kernels/cuda/cluster_products.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "kernels/cuda/weights.h"
#include "tests/support/model_builder.h"

namespace kinglet::cuda::cluster_products_test {
namespace {

constexpr uint32_t kThreads = 256;

struct Shape {
  uint32_t rows, stored, cols, lanes;  // `stored` logits follow those of the product's rows
  int bits;
  bool bytes, fits_int32, biased, rectifies;
  float least_bias = 0;
};

// A product and its lanes; and the same lanes with stored logits, for comparison.
class Cluster {
 public:
  explicit Cluster(const Shape& shape) : shape_(shape) {
    TestRandom random(shape.rows + shape.cols * shape.lanes);
    const auto code_below = [&](uint32_t limit) {
      return static_cast<int16_t>(static_cast<int32_t>(random.Below(2 * limit)) -
                                  static_cast<int32_t>(limit));
    };
    std::vector<int16_t> matrix(size_t{shape.rows} * shape.cols);
    for (int16_t& code : matrix) code = code_below(1u << (shape.bits - 1));
    planes_ = LayOutPlanes(matrix, shape.rows, shape.cols, shape.bits);
    for (uint32_t row = 0; row < shape.rows; ++row) {
      scales_.push_back(1e-6f * static_cast<float>(1 + random.Below(9)));
      bias_.push_back(shape.least_bias + 0.01f * static_cast<float>(random.Below(100)));
    }
    IntegerProduct& product = product_;
    product.matrix = {shape.rows,         shape.cols,          planes_.form,
                      planes_.low.data(), planes_.high.data(), scales_.data()};
    product.x.codes = true;
    product.x.scale = 0.25f;
    product.x_is_byte = shape.bytes;
    product.fits_int32 = product.fits_float = shape.fits_int32;
    product.finish.bias = shape.biased ? bias_.data() : nullptr;
    product.finish.relu = shape.rectifies;
    Logits& logits = logits_;
    const uint32_t count = shape.rows + shape.stored;
    logits.count = count;
    logits.x = {Space::kState, 0};
    logits.largest = logits.x.Plus(count * sizeof(float));
    logits.sums = logits.largest.Plus(logits.TileCount() * sizeof(float));
    logits.normaliser = logits.sums.Plus(logits.TileCount() * sizeof(float));
    for (uint32_t i = 0; i < shape.lanes; ++i) {
      std::vector<int16_t>& x = x_.emplace_back(shape.cols);
      // With at most four columns, codes are small enough that the sums of narrow matrices fit
      // floats.
      const uint32_t largest = shape.cols <= kNarrowColumns ? 16383 : 32767;
      for (int16_t& code : x) code = code_below(shape.bytes ? 127 : largest);
      std::vector<float>& made = made_.emplace_back(count + 2 * logits.TileCount() + 2);
      std::vector<float>& stored = stored_.emplace_back(made.size());
      for (uint32_t row = 0; row < count; ++row) {
        if (row >= shape.rows) {
          made[row] = stored[row] = 0.1f * static_cast<float>(random.Below(50));
          continue;
        }
        int64_t sum = 0;
        for (uint32_t col = 0; col < shape.cols; ++col) {
          sum += int64_t{x[col]} * matrix[size_t{row} * shape.cols + col];
        }
        stored[row] = product.finish(static_cast<float>(sum) * (scales_[row] * 0.25f), row);
      }
    }
    for (uint32_t i = 0; i < shape.lanes; ++i) {
      lanes_.push_back(LaneOf(i, made_[i]));
      stored_lanes_.push_back(LaneOf(i, stored_[i]));
    }
  }
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  void ExpectSame(Order order) {
    const SumsOfProducts<false> of_bytes = {product_, logits_};
    const SumsOfProducts<true> of_halves = {product_, logits_};
    const Logits& logits = logits_;
    std::vector<std::byte> shared(
        std::max(of_bytes.SharedBytes(), SumsOfTiles{logits}.SharedBytes()));
    const Block block(kThreads, shared.data(), order);
    const auto each = [&](uint32_t items, const std::vector<Lane>& lanes, const auto& run) {
      for (uint32_t i = 0; i < items; ++i) {
        std::fill(shared.begin(), shared.end(), std::byte{0xA5});
        const uint32_t item = order == Order::kForward ? i : items - 1 - i;
        run(Work{lanes.data(), shape_.lanes, item, block});
      }
    };
    const auto run = [&](const auto& node) {
      each(node.WorkItems(shape_.lanes, block.warps()), lanes_,
           [&](const Work& work) { Run(node, work); });
    };
    product_.matrix.narrow() ? run(of_halves) : run(of_bytes);
    const uint32_t all = shape_.lanes * logits.TileCount();
    each(all, stored_lanes_, [&](const Work& work) { Run(SumsOfTiles{logits}, work); });
    for (uint32_t i = 0; i < shape_.lanes; ++i) {
      for (size_t at = logits.count; at < made_[i].size() - 1; ++at) {
        ASSERT_EQ(made_[i][at], stored_[i][at])
            << "lane " << i << " of " << shape_.lanes << ", number " << at - logits.count;
      }
    }
  }

 private:
  Lane LaneOf(uint32_t i, std::vector<float>& numbers) {
    Lane lane{};
    lane.scratch = reinterpret_cast<std::byte*>(x_[i].data());
    lane.state = reinterpret_cast<std::byte*>(numbers.data());
    return lane;
  }

  Shape shape_;
  BytePlanes planes_;
  std::vector<float> scales_, bias_;
  std::vector<std::vector<int16_t>> x_;
  std::vector<std::vector<float>> made_, stored_;
  std::vector<Lane> lanes_, stored_lanes_;
  IntegerProduct product_{};
  Logits logits_{};
};

void ExpectSame(const Shape& shape) {
  for (const Order order : {Order::kForward, Order::kBackward}) {
    Cluster(shape).ExpectSame(order);
  }
}

TEST(ClusterProducts, OfWholeTiles) {
  ExpectSame({1088, 0, 32, 64, 9, false, true, true, false});
  ExpectSame({64, 0, 64, 64, 8, false, true, false, false});
  ExpectSame({64, 0, 64, 64, 16, true, true, true, false});
}

// Matrices of at most four columns, whose lanes are threads: sums up to 2^24; logits beyond the
// product's rows; partial sum tiles.
TEST(ClusterProducts, OfNarrowMatrices) {
  ExpectSame({1024, 0, 4, 64, 9, false, true, true, false});
  ExpectSame({4099, 0, 4, 70, 9, false, true, true, false});
  ExpectSame({60, 0, 1, 3, 8, true, true, false, false});
  ExpectSame({1100, 7, 3, 9, 9, false, true, true, false});
}

TEST(ClusterProducts, OfRaggedTilesAndLanes) {
  ExpectSame({1049, 5, 33, 70, 9, false, true, true, false});
  ExpectSame({60, 0, 20, 33, 8, true, true, false, false});
  ExpectSame({2100, 2, 7, 9, 14, false, true, true, false});
}

TEST(ClusterProducts, OfSumsOf64BitsAndRectifiedOnes) {
  ExpectSame({80, 1, 40, 66, 16, false, false, true, false});
  ExpectSame({80, 0, 40, 64, 9, false, true, true, true});
}

// References of their own: in all sum tiles, or in those whose largest logit is above 64.
TEST(ClusterProducts, OfExtremeBiases) {
  for (const float least : {-90.0f, 63.01f, 300.0f}) {
    ExpectSame({2100, 0, 4, 70, 9, false, true, true, false, least});
    ExpectSame({1049, 5, 33, 70, 9, false, true, true, false, least});
  }
}

TEST(ClusterProducts, AWorkItemHasSomeSumTilesOf64Lanes) {
  SumsOfProducts<false> wide{};
  SumsOfProducts<true> narrow{};
  wide.logits.count = narrow.logits.count = 9 * kSumTile;
  EXPECT_EQ(wide.WorkItems(4096, 8), 64u * 5);
  EXPECT_EQ(narrow.WorkItems(65, 8), 2u * 3);
}

}  // namespace
}  // namespace kinglet::cuda::cluster_products_test
