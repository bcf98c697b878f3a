// Attention over many tokens, with rings that stay on the device, and for many lanes at positions
// of their own. The conformance test has single tokens.
#include "kernels/cuda/attention.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "tests/kernels/cuda/lanes.h"
#include "tests/support/case_builder.h"

namespace kinglet::cuda::attention_test {
namespace {

enum class Positions : uint8_t { kNone, kColumns, kRows };

struct Shape {
  uint32_t heads, key_size, value_size, window;
  int bits;  // 0 for floats
  Positions positions = Positions::kNone;
  StreamStart start = StreamStart::kMasked;
  bool start_row = false;
  bool restarts = false;
  bool nine_bit_rows = false;  // rings of Element::kCode9
};

struct Streams {
  OpCase op_case;
  BufferId input;
};

Streams WindowStreams(const Shape& shape) {
  CaseBuilder builder("window ", shape.window);
  const uint64_t keys = uint64_t{shape.heads} * shape.key_size;
  const uint64_t values = uint64_t{shape.heads} * shape.value_size;
  WindowAttention op{};
  op.qkv = builder.Vector("qkv", 2 * keys + values, shape.bits, Fill::kRandom);
  const auto ring = [&](const char* name, uint64_t row) {
    if (shape.nine_bit_rows) return builder.NineBitRows(name, row, shape.window, Fill::kRandom);
    return builder.Vector(name, shape.window * row, shape.bits, Fill::kRandom, true);
  };
  op.keys = ring("keys", keys);
  op.values = ring("values", values);
  if (shape.positions == Positions::kColumns) {
    op.positions = SlotColumns{builder.Matrix(shape.key_size, shape.window, Storage::kF32, 0)};
  } else if (shape.positions == Positions::kRows) {
    RelativeRows rows{};
    rows.projection = builder.Matrix(keys, 6, Storage::kF32, 0);
    rows.frequencies = builder.DenseVector(3);
    rows.content_bias = builder.Matrix(shape.heads, shape.key_size, Storage::kF32, 0);
    rows.position_bias = builder.Matrix(shape.heads, shape.key_size, Storage::kF32, 0);
    rows.clamp = shape.window / 2;
    op.positions = rows;
  }
  op.heads = shape.heads;
  op.key_size = shape.key_size;
  op.value_size = shape.value_size;
  op.window = shape.window;
  op.start = shape.start;
  op.restarts = shape.restarts;
  if (shape.start_row) op.start_row = builder.DenseVector(keys + values);
  if (shape.bits != 0) op.weights_quantiser = QuantiserOf(9, 1.0f);
  op.weights = builder.Floats("weights", uint64_t{shape.heads} * shape.window, Fill::kRandom);
  op.out = builder.Floats("out", values, Fill::kRandom);
  const BufferId input = op.qkv;
  return {builder.Finish(op), input};
}

// For each entry of `begins`, a stream that starts at this position with an empty ring. Runs
// `tokens` tokens on each.
void ExpectSameAsRef(const Shape& shape, const std::vector<uint64_t>& begins, uint64_t tokens,
                     Order order = Order::kForward) {
  const Streams streams = WindowStreams(shape);
  Lanes lanes(streams.op_case, begins.size(), {5, order});
  for (uint64_t i = 0; i < tokens; ++i) {
    lanes.Randomise(streams.input);
    std::vector<StreamPlace> places;
    for (const uint64_t begin : begins) places.push_back({begin + i});
    lanes.RunAt(places);
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(CudaWindowAttention, RingsThatWrapAgainAndAgain) {
  for (const int bits : {0, 9, 16}) {
    for (const Positions positions : {Positions::kNone, Positions::kColumns, Positions::kRows}) {
      ExpectSameAsRef({2, 5, 7, 13, bits, positions}, {0}, 60);
      ExpectSameAsRef({2, 4, 8, 33, bits, positions, StreamStart::kZeros}, {0}, 110);
    }
    ExpectSameAsRef({3, 8, 4, 13, bits, Positions::kRows, StreamStart::kZeros, true}, {0}, 40);
    ExpectSameAsRef({2, 8, 12, 13, bits, Positions::kNone, StreamStart::kMasked, false, true}, {0},
                    60);
  }
}

TEST(CudaWindowAttention, LanesAtPlacesOfTheirOwn) {
  const std::vector<uint64_t> begins = {0, 3, 11, 12, 13, 100, uint64_t{1} << 40};
  for (const int bits : {0, 9}) {
    for (const Order order : {Order::kForward, Order::kBackward}) {
      ExpectSameAsRef({2, 33, 20, 13, bits, Positions::kColumns}, begins, 15, order);
      ExpectSameAsRef({1, 12, 8, 13, bits, Positions::kRows, StreamStart::kZeros, true}, begins, 15,
                      order);
    }
  }
}

// Few and many lanes, of short and of long windows.
TEST(CudaWindowAttention, RingsOfNineBits) {
  const auto rows = [](uint32_t heads, uint32_t key_size, uint32_t value_size, uint32_t window) {
    return Shape{heads, key_size, value_size, window, 9, Positions::kColumns, StreamStart::kZeros,
                 false, false,    true};
  };
  ExpectSameAsRef(rows(5, 8, 16, 13), {0}, 40);
  ExpectSameAsRef(rows(3, 24, 40, 33), {0, 5, 32, 33, 100}, 12, Order::kBackward);
  ExpectSameAsRef(rows(2, 32, 32, 300), {0, 290}, 20);
  std::vector<uint64_t> begins;
  for (uint64_t i = 0; i < 65; ++i) begins.push_back(i % 29);
  ExpectSameAsRef(rows(8, 24, 24, 97), begins, 2);
}

TEST(CudaWindowAttention, ManyLanes) {
  std::vector<uint64_t> begins;
  for (uint64_t i = 0; i < 65; ++i) begins.push_back(i % 29);
  for (const int bits : {0, 9, 16}) {
    for (const Order order : {Order::kForward, Order::kBackward}) {
      ExpectSameAsRef({3, 24, 20, 97, bits, Positions::kColumns}, begins, 2, order);
      ExpectSameAsRef({3, 33, 7, 13, bits, Positions::kRows}, begins, 2, order);
      ExpectSameAsRef({2, 8, 12, 13, bits, Positions::kNone, StreamStart::kMasked, false, true},
                      begins, 2, order);
    }
  }
  ExpectSameAsRef({1, 8, 800, 13, 9, Positions::kNone}, begins, 2);
}

// Windows whose heads are divided among several work items.
TEST(CudaWindowAttention, LongWindows) {
  for (const int bits : {0, 9}) {
    ExpectSameAsRef({2, 8, 36, 257, bits, Positions::kRows}, {0, 200, 255, 256, 500}, 20);
    ExpectSameAsRef({1, 3, 17, 300, bits, Positions::kNone, StreamStart::kZeros, true}, {0, 290},
                    20, Order::kBackward);
    ExpectSameAsRef({1, 4, 4, 2050, bits, Positions::kColumns}, {2040}, 15);
  }
}

// With enough heads that heads are not divided.
TEST(CudaWindowAttention, LongWindowsOfManyLanes) {
  std::vector<uint64_t> begins;
  for (uint64_t i = 0; i < 33; ++i) begins.push_back(i * 19);
  for (const int bits : {0, 9}) {
    ASSERT_GE(begins.size() * 16, kManyHeads);
    ExpectSameAsRef({16, 4, 20, 260, bits, Positions::kRows}, begins, 2);
  }
}

struct SourceShape {
  uint32_t heads, key_size, value_size, window, spare;
  int bits;
};

Streams SourceStreams(const SourceShape& shape) {
  CaseBuilder builder("source ", shape.window);
  SourceAttention op{};
  op.query = builder.Vector("query", uint64_t{shape.heads} * (shape.key_size + shape.spare),
                            shape.bits, Fill::kRandom);
  op.memory = builder.Vector(
      "memory",
      uint64_t{shape.window} * shape.heads * (shape.spare + shape.key_size + shape.value_size),
      shape.bits, Fill::kRandom, true);
  op.heads = shape.heads;
  op.key_size = shape.key_size;
  op.value_size = shape.value_size;
  op.window = shape.window;
  if (shape.bits != 0) op.weights_quantiser = QuantiserOf(9, 1.0f);
  op.weights = builder.Floats("weights", uint64_t{shape.heads} * shape.window, Fill::kRandom);
  op.out = builder.Floats("out", uint64_t{shape.heads} * shape.value_size, Fill::kRandom);
  OpCase op_case = builder.Finish(op);
  return {op_case, op.memory};
}

TEST(CudaSourceAttention, SourcesOfEveryLength) {
  for (const int bits : {0, 9, 16}) {
    for (const SourceShape& shape :
         {SourceShape{2, 8, 12, 70, 0, bits}, SourceShape{3, 33, 5, 70, 3, bits},
          SourceShape{1, 4, 20, 300, 4, bits}}) {
      const Streams streams = SourceStreams(shape);
      const auto& op = std::get<SourceAttention>(streams.op_case.plan.nodes[0].op);
      Lanes lanes(streams.op_case, 7);
      lanes.Randomise(op.memory);
      std::vector<StreamPlace> places;
      for (const uint64_t length : {1u, 2u, 31u, 32u, 33u, 69u, shape.window}) {
        places.push_back({0, length});
      }
      for (uint64_t token = 0; token < 3; ++token) {
        lanes.Randomise(op.query);
        lanes.RunAt(places);
        for (StreamPlace& place : places) ++place.position;
      }
    }
  }
}

}  // namespace
}  // namespace kinglet::cuda::attention_test
