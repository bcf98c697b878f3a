// A product that sums the tiles of its logits gives the results of the reference's two nodes.
#include "kernels/cpu/logit_tiles.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/cpu/cpu.h"
#include "kernels/ref/ref.h"
#include "tests/support/case_builder.h"

namespace kinglet::cpu::logit_tiles_test {
namespace {

// How the file stores a product's biases: floats, or integers with one divisor.
enum class Bias : uint8_t { kNone, kFloats, kIntegers9, kIntegers16 };

struct Shape {
  uint64_t rows, cols;
  int bits;  // 0 for floats
  Bias bias;
};

// A product and its normaliser. The last `y_more` logits are not rows of the product.
OpCase Cluster(const Shape& shape, uint64_t y_more = 0, bool real_x = false) {
  CaseBuilder builder("", shape.rows + shape.cols);
  MatVec product{};
  product.weight = builder.Matrix(shape.rows, shape.cols,
                                  shape.bits == 0 ? Storage::kF32 : Storage::kPerRow, shape.bits);
  if (shape.bias == Bias::kFloats) product.bias = builder.DenseVector(shape.rows);
  if (shape.bias == Bias::kIntegers9) product.bias = builder.DividedVector(shape.rows, 9);
  if (shape.bias == Bias::kIntegers16) product.bias = builder.DividedVector(shape.rows, 16);
  product.x = builder.Vector("x", shape.cols, shape.bits == 0 || real_x ? 0 : 9, Fill::kRandom);
  product.y = builder.Floats("y", shape.rows + y_more, Fill::kRandom);
  LogSumExp normaliser{};
  normaliser.x = product.y;
  normaliser.out = builder.Floats("out", LogSumExp::kCount, Fill::kZero);
  const uint64_t tiles = SumTiles(shape.rows + y_more);
  normaliser.tiles = {builder.Floats("largest", tiles, Fill::kZero),
                      builder.Floats("sums", tiles, Fill::kZero)};
  OpCase cluster = builder.Finish(product);
  cluster.plan.nodes.push_back({"normaliser", normaliser});
  return cluster;
}

// Where the logits are stored: in their buffer; nowhere, and computed again afterwards; or in the
// caller's memory, from which the test then copies them.
enum class Stored : uint8_t { kInBuffer, kNowhere, kElsewhere };

// Runs both kernels on `count` frames at once. Returns the contents of each frame after its x.
std::vector<std::vector<float>> Results(const OpCase& cluster, const BufferLayout& layout,
                                        std::vector<Kernel> kernels, size_t count,
                                        Stored stored = Stored::kInBuffer) {
  std::vector<std::vector<float>> memory(count);
  std::vector<StreamFrame> frames;
  TestRandom random(count);
  const Slot& y = layout.slots[1];
  std::vector<std::vector<float>> elsewhere(count, std::vector<float>(y.count + 2, 7.0f));
  for (std::vector<float>& own : memory) {
    own.resize(layout.scratch_bytes / sizeof(float) + 16);
    auto* const begin =
        reinterpret_cast<std::byte*>((reinterpret_cast<uintptr_t>(own.data()) + 63) / 64 * 64);
    StreamFrame frame{begin, nullptr, 3, 0};
    frame.logits.is_nowhere = stored == Stored::kNowhere;
    // One float after the beginning, so not aligned.
    if (stored == Stored::kElsewhere) frame.logits.answer = &elsewhere[frames.size()][1];
    const Slot& x = layout.slots[0];
    for (uint64_t i = 0; i < x.count; ++i) {
      if (cluster.plan.buffers[0].element == Element::kReal) {
        x.At<float>(frame)[i] = random.Signed();
      } else {
        x.At<int16_t>(frame)[i] = static_cast<int16_t>(random.Below(511)) - 255;
      }
    }
    frames.push_back(frame);
  }
  for (const Kernel& kernel : kernels) kernel.Run(frames);
  if (stored == Stored::kElsewhere && kernels.front().logits) {
    for (size_t i = 0; i < count; ++i) {
      EXPECT_EQ(y.At<float>(frames[i])[0], 0.0f);
      EXPECT_EQ(elsewhere[i].front(), 7.0f);
      EXPECT_EQ(elsewhere[i].back(), 7.0f);
      std::copy_n(&elsewhere[i][1], y.count, y.At<float>(frames[i]));
      EXPECT_TRUE(!kernels.front().logits.are_finite ||
                  kernels.front().logits.are_finite(frames[i]));
    }
  }
  if (stored == Stored::kNowhere && kernels.front().logits) {
    for (const StreamFrame& frame : frames) {
      EXPECT_EQ(y.At<float>(frame)[0], 0.0f);
      // In parts that do not end with a panel.
      for (uint64_t first = 0; first < y.count;) {
        const uint64_t n = std::min<uint64_t>(y.count - first, first + 5);
        kernels.front().logits.make(frame, first, n);
        first += n;
      }
    }
  }
  std::vector<std::vector<float>> results;
  for (const StreamFrame& frame : frames) {
    const auto* const end = reinterpret_cast<const float*>(frame.scratch + layout.scratch_bytes);
    const float* const begin = layout.slots[1].At<float>(frame);
    results.emplace_back(begin, end);
  }
  return results;
}

TEST(LogitTiles, OfAProductAreThoseOfTheReference) {
  const std::vector<Shape> shapes = {
      {65536, 4, 9, Bias::kFloats},    {65537, 4, 9, Bias::kFloats},
      {70001, 3, 8, Bias::kNone},      {66000, 1, 9, Bias::kFloats},
      {65600, 18, 9, Bias::kFloats},   {65550, 5, 0, Bias::kFloats},
      {65551, 4, 9, Bias::kIntegers9}, {65543, 2, 8, Bias::kIntegers16},
      {65559, 3, 5, Bias::kIntegers9}, {65550, 4, 12, Bias::kIntegers9},
      {65570, 4, 0, Bias::kIntegers9}, {65541, 6, 9, Bias::kIntegers9},
      {65537, 65, 9, Bias::kFloats},      // too wide to compute logits again
      {63 * 1024, 4, 9, Bias::kFloats}};  // the last has too few tiles
  for (const Shape& shape : shapes) {
    const OpCase cluster = Cluster(shape);
    const BufferLayout layout = LayOut(cluster.plan, sizeof(float)).value();
    for (const size_t count : {1u, 5u, 9u}) {
      const auto expected =
          Results(cluster, layout, ref::BindFloat(cluster.plan, layout).value(), count);
      for (const Target target : SupportedTargets()) {
        for (const Stored stored : {Stored::kInBuffer, Stored::kNowhere, Stored::kElsewhere}) {
          auto kernels = BindWith(FindVectorFunctions(target), cluster.plan, layout);
          ASSERT_TRUE(kernels.ok());
          EXPECT_EQ(bool{kernels->front().logits}, FindVectorFunctions(target) != nullptr &&
                                                       shape.rows >= 65536 && shape.cols <= 64);
          EXPECT_EQ(bool{kernels->front().logits.are_finite},
                    bool{kernels->front().logits} && shape.bits != 0);
          ASSERT_TRUE(Results(cluster, layout, std::move(*kernels), count, stored) == expected)
              << TargetName(target) << " " << shape.rows << " x " << shape.cols << ", " << count
              << ", stored " << static_cast<int>(stored);
        }
      }
    }
  }
}

// From tiles of which some have a reference of their own (TileReference) to all.
TEST(LogitTiles, OfExtremeLogitsAreThoseOfTheReference) {
  for (const float factor : {1.0f, 8.0f, 40.0f, 200.0f, 1e4f}) {
    OpCase cluster = Cluster({65537, 4, 9, Bias::kFloats});
    cluster.plan.buffers[0].quantiser->scale *= factor;
    const BufferLayout layout = LayOut(cluster.plan, sizeof(float)).value();
    const auto expected = Results(cluster, layout, ref::BindFloat(cluster.plan, layout).value(), 9);
    for (const Target target : SupportedTargets()) {
      for (const Stored stored : {Stored::kInBuffer, Stored::kNowhere, Stored::kElsewhere}) {
        auto kernels = BindWith(FindVectorFunctions(target), cluster.plan, layout);
        ASSERT_TRUE(kernels.ok());
        ASSERT_TRUE(Results(cluster, layout, std::move(*kernels), 9, stored) == expected)
            << TargetName(target) << " " << factor;
      }
    }
  }
}

TEST(LogitTiles, OfAVectorOfFloatsMayBeAnything) {
  const OpCase cluster = Cluster({65536, 4, 9, Bias::kNone}, 0, true);
  const BufferLayout layout = LayOut(cluster.plan, sizeof(float)).value();
  for (const Target target : SupportedTargets()) {
    const auto kernels = BindWith(FindVectorFunctions(target), cluster.plan, layout);
    ASSERT_TRUE(kernels.ok());
    EXPECT_EQ(bool{kernels->front().logits}, FindVectorFunctions(target) != nullptr);
    EXPECT_FALSE(kernels->front().logits.are_finite);
  }
}

TEST(SummedProducts, MakeAllLogitsOfTheNodeAfterThem) {
  const Shape shape = {70000, 4, 9, Bias::kFloats};
  const OpCase whole = Cluster(shape);
  const auto& product = std::get<MatVec>(whole.plan.nodes[0].op);
  EXPECT_EQ(SummedProducts(whole.plan).NormaliserOf(product),
            std::get_if<LogSumExp>(&whole.plan.nodes[1].op));
  const OpCase part = Cluster(shape, 1);
  EXPECT_EQ(SummedProducts(part.plan).NormaliserOf(std::get<MatVec>(part.plan.nodes[0].op)),
            nullptr);
  OpCase changed = Cluster(shape);
  changed.plan.nodes.insert(changed.plan.nodes.begin() + 1,
                            {"more", AddScalar{product.y, 0, product.y, 0, 1}});
  EXPECT_EQ(SummedProducts(changed.plan).NormaliserOf(std::get<MatVec>(changed.plan.nodes[0].op)),
            nullptr);
}

TEST(SummedProducts, TellNormalisersWhatIsDone) {
  const OpCase cluster = Cluster({70000, 4, 9, Bias::kFloats});
  SummedProducts products(cluster.plan);
  const auto& normaliser = std::get<LogSumExp>(cluster.plan.nodes[1].op);
  EXPECT_FALSE(products.IsSummed(normaliser));
  products.SetSummed(normaliser);
  EXPECT_TRUE(products.IsSummed(normaliser));
}

}  // namespace
}  // namespace kinglet::cpu::logit_tiles_test
