// Plans of several nodes on the emulated device against `ref`, and nodes that are merged.
#include "kernels/cuda/program.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cuda/emulated_device.h"
#include "kernels/cuda/operations.h"
#include "kernels/ref/ref.h"
#include "runtime/lower/builder.h"
#include "tests/support/model_builder.h"
#include "tests/support/op_cases.h"

namespace kinglet::cuda::program_test {
namespace {

Quantised RandomCodes(TestRandom& random, uint64_t rows, uint64_t cols, int bits) {
  Quantised values{bits, ScaleRule::kMultiplyPerRow, {}, {}};
  const auto limit = static_cast<int>(1u << (bits - 1));
  for (uint64_t i = 0; i < rows * cols; ++i) {
    values.codes.push_back(static_cast<int16_t>(
        static_cast<int>(random.Below(static_cast<uint32_t>(2 * limit))) - limit));
  }
  for (uint64_t i = 0; i < rows; ++i) {
    values.scales.push_back(0.0005f * static_cast<float>(1 + random.Below(5)));
  }
  return values;
}

// Codes -> product -> quantised -> product -> sum with the first -> normalised -> quantised.
class Chain {
 public:
  explicit Chain(uint32_t width, int bits = 9) {
    TestRandom random(width);
    PlanBuilder builder(plan);
    const ActivationQuantiser quantiser = {2.0f, 2.0f / 255};
    x = builder.Codes("x", width, quantiser);
    const BufferId inner = builder.Floats("inner", 3 * width), y = builder.Floats("y", width);
    DenseF32 gains;
    for (uint32_t i = 0; i < width; ++i)
      gains.values.push_back(0.5f + 0.01f * static_cast<float>(i));
    const WeightId up =
        pool_.Add({"up", {3 * width, width}, RandomCodes(random, 3 * width, width, bits)});
    const WeightId down =
        pool_.Add({"down", {width, 3 * width}, RandomCodes(random, width, 3 * width, 9)});
    const WeightId gain = pool_.Add({"gain", {width}, gains});
    plan.weights = pool_.views();
    MatVec first{up, std::nullopt, x, inner};
    first.relu = true;
    builder.AddNode("up", first);
    const BufferId inner_codes = builder.Quantised("quantise", inner, &quantiser);
    builder.AddNode("down", MatVec{down, std::nullopt, inner_codes, y});
    builder.AddNode("add", Add{x, y});
    builder.AddNode("norm", LayerNorm{y, gain, gain, 1e-5, y});
    builder.Quantised("quantise.y", y, &quantiser);
    layout = LayOut(plan, sizeof(float)).value();
  }
  Chain(const Chain&) = delete;
  Chain& operator=(const Chain&) = delete;

  Plan plan;
  BufferLayout layout;
  BufferId x{};

 private:
  TensorPool pool_;
};

void ExpectSameAsRef(uint32_t width, uint32_t lane_count, Order order) {
  const Chain chain(width);
  const std::shared_ptr<Device> device = EmulatedDevice({3, order});
  const auto bound = Program::Bind(chain.plan, chain.layout, device, {});
  ASSERT_TRUE(bound.ok()) << bound.status().message();
  const std::unique_ptr<Queue> queue = std::move(device->CreateQueue()).value();
  const auto kernels = ref::BindFloat(chain.plan, chain.layout).value();
  std::vector<std::vector<std::byte>> memory(lane_count), expected;
  std::vector<std::byte> temporary((*bound)->temporary_bytes());
  std::vector<Lane> lanes;
  for (uint32_t n = 0; n < lane_count; ++n) {
    memory[n].resize(chain.layout.scratch_bytes);
    StreamFrame frame = {memory[n].data(), nullptr, 0, 0};
    for (uint64_t i = 0; i < chain.layout[chain.x].count; ++i) {
      chain.layout[chain.x].At<int16_t>(frame)[i] =
          static_cast<int16_t>((n * 31 + i * 97) % 511) - 255;
    }
    expected.push_back(memory[n]);
    frame.scratch = expected.back().data();
    for (const Kernel& kernel : kernels) kernel.Run({&frame, 1});
    lanes.push_back({memory[n].data(), nullptr, temporary.data(), 0, 0, 0, 0, 0, 0, nullptr});
  }
  const NodeList list = (*bound)->List({0, chain.plan.nodes.size()});
  ASSERT_TRUE(queue->Run(list, lanes.data(), lane_count).ok());
  for (uint32_t n = 0; n < lane_count; ++n) {
    for (size_t id = 0; id < chain.plan.buffers.size(); ++id) {
      const Slot& slot = chain.layout.slots[id];
      const uint64_t bytes = BytesOf(chain.plan.buffers[id], slot.count, 4);
      EXPECT_EQ(
          std::memcmp(memory[n].data() + slot.offset, expected[n].data() + slot.offset, bytes), 0)
          << chain.plan.buffers[id].name << " of lane " << n;
    }
  }
}

TEST(CudaProgram, ChainsOfNodesEqualRef) {
  for (const Order order : {Order::kForward, Order::kBackward}) {
    for (const uint32_t width : {1u, 17u, 64u, 130u}) {
      for (const uint32_t lanes : {1u, 5u, 100u}) ExpectSameAsRef(width, lanes, order);
    }
  }
}

TEST(CudaProgram, AProductQuantisesWhatTheNextNodeWould) {
  const Chain chain(20);
  const auto bound = Program::Bind(chain.plan, chain.layout, EmulatedDevice(), {});
  ASSERT_TRUE(bound.ok());
  EXPECT_EQ((*bound)->List({1, 2}).count, 0u);
  EXPECT_EQ((*bound)->List({5, 6}).count, 1u);  // the quantiser after the layer norm stays
}

// Half precision has no integers of 13 bits, though floats add their products exactly.
TEST(CudaProgram, OnlyShortNarrowMatricesAreHalves) {
  for (const int bits : {9, 12, 13}) {
    const Chain chain(4, bits);
    const auto bound = Program::Bind(chain.plan, chain.layout, EmulatedDevice(), {});
    const auto product = ArgumentsOf<IntegerProduct>((*bound)->List({0, 1}).nodes[0]);
    ASSERT_TRUE(product.matrix.narrow());
    EXPECT_TRUE(product.fits_float);
    EXPECT_EQ(product.fits_halves, bits < 13) << bits;
  }
}

TEST(CudaProgram, RefusesWhatDoesNotFit) {
  const Chain chain(130);
  Emulation small;
  small.memory_bytes = 1000;
  const auto bound = Program::Bind(chain.plan, chain.layout, EmulatedDevice(small), {});
  EXPECT_EQ(bound.status().code(), KINGLET_OUT_OF_MEMORY);
}

}  // namespace
}  // namespace kinglet::cuda::program_test
