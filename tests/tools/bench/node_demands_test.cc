#include "tools/bench/node_demands.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "kernels/device_program.h"
#include "tests/support/device_backends.h"
#include "tests/support/model_builder.h"

namespace kinglet::node_demands_test {
namespace {

class NodeDemandsTest : public testing::Test {
 protected:
  void SetUp() override {
    TinyOptions options;
    options.quantised = true;
    options.width = 40;
    options.inner = 100;
    options.cache_capacity = 7;
    model_ = *Model::FromBytes(*SerialiseModel(TinyMicronet(options)), {.own_backend = &backend_});
  }
  // The first node that multiplies codes with a matrix, and has no bytes of codes.
  size_t FirstProduct() const {
    const Plan& plan = model_->plan();
    for (size_t i = 0; i < plan.nodes.size(); ++i) {
      const auto* product = std::get_if<MatVec>(&plan.nodes[i].op);
      if (product != nullptr && plan.buffer(product->x).element == Element::kCode16) return i;
    }
    ADD_FAILURE() << "no product";
    return 0;
  }
  static uint64_t RoundedUp(uint64_t n, uint64_t to) { return (n + to - 1) / to * to; }

  const Backend backend_ = EmulatedCuda();
  std::shared_ptr<const Model> model_;
};

TEST_F(NodeDemandsTest, AProductsAreItsWeightsOnceAndItsVectorsForEachLane) {
  const size_t i = FirstProduct();
  const auto& product = std::get<MatVec>(model_->plan().nodes[i].op);
  const std::vector<uint64_t>& shape = model_->plan().weights[product.weight].shape;
  ASSERT_EQ(shape[1], 40u);
  const uint64_t entries = RoundedUp(shape[0], 16) * RoundedUp(shape[1], 32);
  // 9 bits, a scale and perhaps a bias for each row; codes of 16 bits come in, floats go out.
  const uint64_t weights =
      entries * 9 / 8 + shape[0] * 4 + (product.bias.has_value() ? shape[0] * 4 : 0);
  const uint64_t vectors = shape[1] * 2 + shape[0] * 4;
  NodeDemands demands(*model_);
  EXPECT_FALSE(demands[i].has_value());
  const std::vector<StreamFrame> lanes(9, StreamFrame{});
  demands.Add(i, std::span(lanes).first(3));
  EXPECT_EQ(demands[i]->bytes, static_cast<double>(weights + 3 * vectors));
  EXPECT_EQ(demands[i]->byte_products, static_cast<double>(entries * 4 * 16));
  demands.Add(i, lanes);
  EXPECT_EQ(demands[i]->bytes, static_cast<double>(2 * weights + 12 * vectors));
  EXPECT_EQ(demands[i]->byte_products, static_cast<double>(entries * 4 * (16 + 16)));
}

TEST_F(NodeDemandsTest, LanesAtOtherPositionsMoveOtherBytes) {
  const Plan& plan = model_->plan();
  size_t i = 0;
  while (!std::holds_alternative<CacheWeights>(plan.nodes[i].op)) ++i;
  const auto bytes = [&](std::initializer_list<uint64_t> positions) {
    NodeDemands demands(*model_);
    std::vector<StreamFrame> lanes;
    for (const uint64_t position : positions) {
      StreamFrame frame{};
      frame.position = position;
      lanes.push_back(frame);
    }
    demands.Add(i, lanes);
    return demands[i]->bytes;
  };
  EXPECT_EQ(bytes({0, 5, 5, 1}), bytes({0}) + bytes({5}) + bytes({5}) + bytes({1}));
  // A pair more is a key of 40 codes in 9 bits read, padded to 64, and a weight written.
  EXPECT_EQ(bytes({5}) - bytes({4}), 64 * 9 / 8 + 4);
}

TEST_F(NodeDemandsTest, WhatAnotherStepDoesAsksForNothing) {
  const Plan& plan = model_->plan();
  NodeDemands demands(*model_);
  const std::vector<StreamFrame> lanes(2, StreamFrame{});
  size_t joined = 0;
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    demands.Add(i, lanes);
    if (demands[i]) continue;
    EXPECT_TRUE(std::holds_alternative<Quantise>(plan.nodes[i].op)) << plan.nodes[i].name;
    ++joined;
  }
  EXPECT_GT(joined, 0u);
}

TEST(FractionOfPeak, IsNothingWhereThePeakOrTheTimeIsUnknown) {
  EXPECT_EQ(FractionOfPeak(30, 2, 60), 0.25);
  EXPECT_EQ(FractionOfPeak(0, 2, 60), 0.0);
  EXPECT_FALSE(FractionOfPeak(30, 2, 0).has_value());
  EXPECT_FALSE(FractionOfPeak(30, 0, 60).has_value());
}

}  // namespace
}  // namespace kinglet::node_demands_test
