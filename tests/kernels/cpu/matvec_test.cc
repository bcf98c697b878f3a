// Integer sums that exceed 31 bits, and which products have a vectorised kernel.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "kernels/cpu/bind.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/panels.h"
#include "tests/kernels/cpu/vector_fixture.h"
#include "tests/support/case_builder.h"

namespace kinglet::cpu::matvec_test {
namespace {

OpCase ProductCase(uint64_t cols, int bits, int x_bits, Storage storage = Storage::kPerRow) {
  CaseBuilder builder("", cols);
  MatVec op;
  op.weight = builder.Matrix(3, cols, storage, bits, false, Fill::kExtreme);
  op.x = builder.Vector("x", cols, x_bits, Fill::kExtreme);
  op.y = builder.Floats("y", 3, Fill::kZero);
  return builder.Finish(op);
}

using MatVecTest = VectorFixture;

TEST_F(MatVecTest, SumsBeyond31BitsAreExact) {
  for (const Target target : SupportedTargets()) {
    for (const uint64_t cols : {1u, 2u, 3u, 4u, 5u, 100u, 8192u}) {
      const OpCase op_case = ProductCase(cols, 16, 16);
      const BufferLayout layout = LayOut(op_case.plan, sizeof(float)).value();
      const auto kernels = BindWith(FindVectorFunctions(target), op_case.plan, layout);
      ASSERT_TRUE(kernels.ok());
      OpRun run(op_case, sizeof(float));
      run.Run(kernels->front());
      // Every product is (-2^15) * (-(2^15 - 1)); 8,192 of them need 43 bits.
      const int64_t sum = static_cast<int64_t>(cols) * 32768 * 32767;
      const std::vector<float> scales = DecodeCodes(op_case.plan.weights[0]).scales;
      const std::vector<double> y = run.Values(BufferId{1});
      for (size_t row = 0; row < 3; ++row) {
        const float scale = op_case.plan.buffers[0].quantiser->scale;
        EXPECT_EQ(y[row], static_cast<float>(sum) * (scales[row] * scale))
            << TargetName(target) << " " << cols;
      }
    }
  }
}

// Memory of one frame for a case, with random operands.
class RandomFrame {
 public:
  RandomFrame(const OpCase& op_case, const BufferLayout& layout, TestRandom& random)
      : scratch_(layout.scratch_bytes / sizeof(float), 0.0f) {
    for (size_t id = 0; id < layout.slots.size(); ++id) {
      const Slot& slot = layout.slots[id];
      const BufferSpec& buffer = op_case.plan.buffers[id];
      for (uint64_t i = 0; i < slot.count; ++i) {
        if (buffer.element == Element::kReal) {
          slot.At<float>(frame())[i] = random.Signed();
        } else {
          slot.At<int16_t>(frame())[i] = static_cast<int16_t>(random.Below(511)) - 255;
        }
      }
    }
  }
  StreamFrame frame() { return {reinterpret_cast<std::byte*>(scratch_.data()), nullptr, 3, 0}; }
  bool operator==(const RandomFrame& other) const {
    return std::memcmp(scratch_.data(), other.scratch_.data(), scratch_.size() * sizeof(float)) ==
           0;
  }

 private:
  AlignedVector<float> scratch_;
};

TEST_F(MatVecTest, FramesTogetherGetWhatEachGetsAlone) {
  struct Form {
    int bits, x_bits;
    Storage storage;
    TailInput input;
    uint64_t cols;
  };
  // Codes, fixed point, and dequantised codes; few columns, and enough that the memory for vectors
  // fits only some frames at a time.
  const std::vector<Form> forms = {{9, 9, Storage::kPerRow, TailInput::kAsIs, 77},
                                   {13, 9, Storage::kPerRow, TailInput::kAsIs, 40},
                                   {9, 0, Storage::kPerRow, TailInput::kAsIs, 77},
                                   {9, 0, Storage::kF32, TailInput::kAsIs, 77},
                                   {9, 0, Storage::kPerRow, TailInput::kFixedPoint15, 6},
                                   {9, 0, Storage::kPerRow, TailInput::kFixedPoint15, 1500},
                                   {9, 9, Storage::kF32, TailInput::kAsIs, 1500}};
  TestRandom random(8);
  for (const Target target : SupportedTargets()) {
    for (const Form& form : forms) {
      CaseBuilder builder("", form.cols);
      MatVec op;
      op.weight = builder.Matrix(300, form.cols, form.storage, form.bits, false, Fill::kRandom);
      op.bias = builder.DenseVector(300);
      op.x = builder.Vector("x", form.cols, form.x_bits, Fill::kZero);
      op.y = builder.Floats("y", 305, Fill::kZero);
      op.y_offset = 3;
      op.input = form.input;
      const OpCase op_case = builder.Finish(op);
      const BufferLayout layout = LayOut(op_case.plan, sizeof(float)).value();
      const auto kernels = BindWith(FindVectorFunctions(target), op_case.plan, layout);
      ASSERT_TRUE(kernels.ok());
      for (const size_t count : {1u, 2u, 7u, 70u}) {
        std::vector<RandomFrame> single, batched;
        std::vector<StreamFrame> frames;
        for (size_t i = 0; i < count; ++i) single.emplace_back(op_case, layout, random);
        batched = single;
        for (RandomFrame& frame : batched) frames.push_back(frame.frame());
        kernels->front().Run(frames);
        for (size_t i = 0; i < count; ++i) {
          StreamFrame frame = single[i].frame();
          kernels->front().Run({&frame, 1});
          ASSERT_TRUE(single[i] == batched[i])
              << TargetName(target) << " " << form.cols << " columns, " << i << " of " << count;
        }
      }
    }
  }
}

TEST_F(MatVecTest, VectorsServeAllButWideCodesAndVeryLongRows) {
  const auto served = [&](const OpCase& op_case) {
    const BufferLayout layout = LayOut(op_case.plan, sizeof(float)).value();
    WeightStore weights(op_case.plan, *functions_);
    const BindContext context{op_case.plan, layout, *functions_, weights};
    return static_cast<bool>(BindOp(std::get<MatVec>(op_case.plan.nodes[0].op), context));
  };
  EXPECT_TRUE(served(ProductCase(8192, 16, 16)));
  EXPECT_TRUE(served(ProductCase(33, 9, 0)));
  EXPECT_TRUE(served(ProductCase(33, 9, 0, Storage::kF32)));
  EXPECT_TRUE(served(ProductCase(33, 9, 9, Storage::kF32)));
  EXPECT_FALSE(served(ProductCase(33, 9, 18)));
  EXPECT_FALSE(served(ProductCase(8193, 9, 9)));
}

}  // namespace
}  // namespace kinglet::cpu::matvec_test
