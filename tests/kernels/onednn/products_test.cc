// Products of complete matrices, whatever the division of their rows and vectors.
#include "kernels/onednn/products.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "kernels/cpu/panels.h"
#include "kernels/cpu/product.h"

namespace kinglet::products_test {
namespace {

using cpu::AlignedVector;
using cpu::ManyProduct;
using cpu::Panels;
using cpu::RealVector;
using onednn::Library;
using onednn::Products;

const Library& TheLibrary() {
  static const auto library = Library::Find();
  EXPECT_TRUE(library.ok()) << library.status().message();
  return **library;
}

float NumberOf(uint64_t i) { return static_cast<float>(i * 37 % 129) / 64 - 1; }

// A matrix, kMost vectors, a bias and relu.
struct Case {
  Case(uint64_t rows, uint64_t cols)
      : panels(std::make_shared<Panels>(Panels::OfFloats(rows, cols))),
        weight(rows * cols),
        x(ManyProduct::kMost * cols),
        bias((rows + cpu::kPanelRows - 1) / cpu::kPanelRows * cpu::kPanelRows) {
    for (uint64_t i = 0; i < weight.size(); ++i) weight[i] = NumberOf(i * i);
    for (uint64_t i = 0; i < x.size(); ++i) x[i] = NumberOf(i * 5 + i / cols);
    for (uint64_t i = 0; i < rows; ++i) bias[i] = NumberOf(i + 3);
    product = products.AnyOf(panels);
    for (uint64_t r = 0; r < rows; ++r) panels->WriteFloats(r, weight.data() + r * cols);
    products.LayOut();
    memory.emplace(2, product->WorkBytes());
  }
  cpu::Finish finish() const { return {bias.data(), true}; }
  // y of `count` vectors from the first one on, [count][rows].
  AlignedVector<float> Multiply(size_t first, size_t count, size_t panels_each) {
    const uint64_t rows = panels->rows();
    AlignedVector<float> y(count * rows, -1.0f);
    for (size_t begin = 0; begin < panels->panels(); begin += panels_each) {
      const size_t end = std::min(begin + panels_each, panels->panels());
      std::vector<RealVector> vectors;
      for (size_t i = 0; i < count; ++i) {
        vectors.push_back({x.data() + (first + i) * panels->cols(),
                           y.data() + i * rows + begin * cpu::kPanelRows});
      }
      product->Multiply({begin, end}, vectors, finish().From(begin * cpu::kPanelRows), *memory);
    }
    return y;
  }

  Products products{TheLibrary()};
  std::shared_ptr<Panels> panels;
  std::vector<float> weight;
  AlignedVector<float> x, bias;
  std::shared_ptr<const ManyProduct> product;
  std::optional<WorkMemory> memory;
};

TEST(OnednnProducts, EqualASumInDoubleAndNeverDependOnTheBatch) {
  for (const uint64_t rows : {1, 129, 300, 1100}) {
    for (const uint64_t cols : {1, 33, 128, 1000}) {
      Case test(rows, cols);
      const AlignedVector<float> all = test.Multiply(0, ManyProduct::kMost, 1000);
      for (size_t v = 0; v < ManyProduct::kMost; ++v) {
        for (uint64_t r = 0; r < rows; ++r) {
          double sum = test.bias[r], magnitude = std::abs(sum);
          for (uint64_t c = 0; c < cols; ++c) {
            const double term = double{test.weight[r * cols + c]} * test.x[v * cols + c];
            sum += term;
            magnitude += std::abs(term);
          }
          ASSERT_NEAR(all[v * rows + r], std::max(sum, 0.0), 1e-6 * magnitude);
        }
      }
      for (const size_t first : {0, 7, 37, 53}) {
        for (const size_t count : {1, 4, 11}) {
          const AlignedVector<float> part =
              test.Multiply(first, count, test.product->PanelsTogether());
          for (size_t i = 0; i < part.size(); ++i) ASSERT_EQ(part[i], all[first * rows + i]);
        }
      }
    }
  }
}

TEST(OnednnProducts, TilesGiveTheSameBitsAtEveryPlace) {
  for (const size_t rows : {16, 112, 256}) {
    for (const size_t cols : {32, 257, 1500}) {
      const std::vector<size_t> tiles = onednn::TilesOf(TheLibrary(), rows, cols);
      ASSERT_FALSE(tiles.empty());
      std::vector<float> weight(rows * cols), vector(cols), expected;
      for (size_t i = 0; i < weight.size(); ++i) weight[i] = NumberOf(i * i + 1) / 3;
      for (size_t i = 0; i < cols; ++i) vector[i] = NumberOf(i + 2) / 7;
      const Library::OneThread one_thread(TheLibrary());
      for (const size_t tile : tiles) {
        for (size_t place = 0; place < tile; ++place) {
          std::vector<float> x(tile * cols, 0.25f), y(tile * rows);
          std::copy(vector.begin(), vector.end(), x.begin() + static_cast<ptrdiff_t>(place * cols));
          TheLibrary().Multiply(tile, rows, cols, x.data(), weight.data(), y.data());
          const std::vector<float> found(y.begin() + static_cast<ptrdiff_t>(place * rows),
                                         y.begin() + static_cast<ptrdiff_t>((place + 1) * rows));
          if (expected.empty()) expected = found;
          ASSERT_EQ(found, expected) << rows << " x " << cols << ", tile " << tile;
        }
      }
    }
  }
}

TEST(OnednnProducts, SmallMatricesStayOurs) {
  Products products(TheLibrary());
  EXPECT_EQ(products.Of(std::make_shared<Panels>(Panels::OfFloats(60000, 4))), nullptr);
  EXPECT_EQ(products.Of(std::make_shared<Panels>(Panels::OfFloats(16, 256))), nullptr);
}

TEST(OnednnProducts, AMatrixThatNodesShareIsLaidOutOnce) {
  Products products(TheLibrary());
  const auto panels = std::make_shared<Panels>(Panels::OfFloats(128, 128));
  EXPECT_EQ(products.Of(panels), products.Of(panels));
}

TEST(OnednnProducts, SeveralThreadsUseOneProduct) {
  Case test(200, 256);
  const AlignedVector<float> expected = test.Multiply(0, 20, 1000);
  AlignedVector<float> results[2];
  std::thread other([&] { results[1] = test.Multiply(0, 20, test.product->PanelsTogether()); });
  results[0] = test.Multiply(0, 20, 1000);
  other.join();
  for (const auto& result : results) EXPECT_EQ(result, expected);
}

TEST(OnednnProducts, WithoutMemoryThrow) {
  Case test(128, 128);
  WorkMemory empty(0, 0);
  AlignedVector<float> y(128);
  const RealVector vector{test.x.data(), y.data()};
  EXPECT_THROW(test.product->Multiply({0, 4}, {&vector, 1}, test.finish(), empty), std::bad_alloc);
}

}  // namespace
}  // namespace kinglet::products_test
