// The neural cache over many tokens: while it fills, full, and overwritten. The conformance test
// has single tokens.
#include "kernels/cuda/cache.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "tests/kernels/cuda/lanes.h"
#include "tests/support/case_builder.h"

namespace kinglet::cuda::cache_test {
namespace {

struct Shape {
  uint64_t width;
  uint32_t capacity;
  int bits;  // 0 for floats
  uint64_t first_position = 1;
};

// A plan with a node that appends a pair and a node that computes the weights.
OpCase CacheOfNodes(const Shape& shape, BufferId& hidden) {
  CaseBuilder builder("cache ", shape.width);
  CacheAppend append{};
  append.hidden = hidden = builder.Vector("hidden", shape.width, shape.bits, Fill::kRandom);
  append.keys = builder.CacheKeys(shape.width, shape.capacity, shape.bits, Fill::kRandom);
  append.tokens = builder.Tokens(shape.capacity);
  append.capacity = shape.capacity;
  CacheWeights ask{};
  ask.hidden = hidden;
  ask.keys = append.keys;
  ask.capacity = shape.capacity;
  ask.theta = 0.01;
  ask.weights = builder.Floats("weights", shape.capacity, Fill::kRandom);
  ask.total = builder.Floats("total", 1, Fill::kRandom);
  ask.first_position = shape.first_position;
  OpCase made = builder.Finish(append);
  made.plan.nodes.push_back({"ask", ask});
  return made;
}

TEST(CudaCache, FilledFullAndOverwritten) {
  for (const Shape& shape :
       {Shape{8, 33, 9}, Shape{8, 33, 8}, Shape{8, 33, 0}, Shape{31, 7, 16, 5},
        Shape{33, 65, 0, 40}, Shape{132, 40, 9}, Shape{130, 40, 9}, Shape{1, 1, 9}}) {
    for (const Order order : {Order::kForward, Order::kBackward}) {
      BufferId hidden{};
      const OpCase op_case = CacheOfNodes(shape, hidden);
      const std::vector<uint64_t> begins = {0, 3, 2 * uint64_t{shape.capacity} + 1};
      Lanes lanes(op_case, begins.size(), {5, order});
      for (uint64_t i = 0; i < 3 * shape.capacity; ++i) {
        lanes.Randomise(hidden);
        std::vector<StreamPlace> places;
        for (const uint64_t begin : begins) {
          places.push_back({begin + i, 0, static_cast<uint32_t>(100 * begin + i)});
        }
        lanes.RunAt(places);
        if (HasFailure()) return;
      }
    }
  }
}

// More pairs than a sum tile has terms.
TEST(CudaCache, LargeCaches) {
  for (const int bits : {0, 9}) {
    BufferId hidden{};
    const OpCase op_case = CacheOfNodes({12, 3001, bits}, hidden);
    Lanes lanes(op_case, 4);
    lanes.Randomise(std::get<CacheAppend>(op_case.plan.nodes[0].op).keys);
    for (uint64_t i = 0; i < 3; ++i) {
      lanes.Randomise(hidden);
      lanes.RunAt({{i + 30, 0, 1}, {i + 1023, 0, 2}, {i + 2999, 0, 3}, {i + 9000, 0, 4}});
    }
  }
}

TEST(CudaCache, OfManyLanes) {
  constexpr uint32_t kMany = 65;
  for (const int bits : {0, 9}) {
    BufferId hidden{};
    const OpCase op_case = CacheOfNodes({12, 300, bits}, hidden);
    for (const Order order : {Order::kForward, Order::kBackward}) {
      Lanes lanes(op_case, kMany, {7, order});
      lanes.Randomise(std::get<CacheAppend>(op_case.plan.nodes[0].op).keys);
      lanes.Randomise(hidden);
      std::vector<StreamPlace> places;
      for (uint32_t i = 0; i < kMany; ++i) places.push_back({5 * i, 0, i});
      lanes.RunAt(places);
    }
  }
}

}  // namespace
}  // namespace kinglet::cuda::cache_test
