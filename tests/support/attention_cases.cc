#include "tests/support/attention_cases.h"

#include <array>
#include <cstdint>
#include <string>

#include "tests/support/case_builder.h"

namespace kinglet {
namespace {

struct AttentionShape {
  uint32_t heads, key_size, value_size, window;
  int bits;  // 0: floats
  StreamStart start;
  uint64_t position;
  Fill fill = Fill::kRandom;
  bool nine_bit_rows = false;  // rings of Element::kCode9; bits are 9
};

OpCase AttentionCase(const std::string& prefix, const AttentionShape& shape) {
  CaseBuilder builder(
      CaseName(prefix, {shape.heads, shape.key_size, shape.value_size, shape.window, shape.bits,
                        static_cast<int>(shape.start), static_cast<int64_t>(shape.position),
                        static_cast<int>(shape.fill)}),
      shape.window + shape.position);
  WindowAttention op;
  const uint64_t heads = shape.heads;
  op.qkv = builder.Vector("qkv", heads * (2 * shape.key_size + shape.value_size), shape.bits,
                          shape.fill);
  const auto ring = [&](const char* name, uint64_t size, Fill fill) {
    if (shape.nine_bit_rows) return builder.NineBitRows(name, heads * size, shape.window, fill);
    return builder.Vector(name, shape.window * heads * size, shape.bits, fill, true);
  };
  op.keys = ring("keys", shape.key_size, Fill::kRandom);
  op.values = ring("values", shape.value_size, shape.fill);
  if (shape.start == StreamStart::kZeros && shape.position < shape.window) {
    builder.ClearFrom(op.keys, (shape.position + 1) * heads * shape.key_size);
    builder.ClearFrom(op.values, (shape.position + 1) * heads * shape.value_size);
  }
  op.positions = SlotColumns{builder.Matrix(shape.key_size, shape.window, Storage::kF32, 0)};
  op.heads = shape.heads;
  op.key_size = shape.key_size;
  op.value_size = shape.value_size;
  op.window = shape.window;
  op.start = shape.start;
  if (shape.bits != 0) op.weights_quantiser = QuantiserOf(shape.bits < 9 ? 9 : shape.bits, 1.0f);
  op.weights = builder.Floats("weights", heads * shape.window, Fill::kRandom);
  op.out = builder.Floats("out", heads * shape.value_size, Fill::kRandom);
  double tolerance = shape.bits == 0 ? 1e-9 : kRoundingTolerance;
  if (shape.fill != Fill::kRandom) tolerance = kNotComparable;
  return builder.Finish(op, tolerance, shape.position);
}

void AddWindowEdges(std::vector<OpCase>& cases) {
  constexpr std::array<std::array<uint32_t, 4>, 11> kShapes = {{{1, 1, 1, 1},
                                                                {2, 3, 5, 6},
                                                                {3, 16, 8, 31},
                                                                {2, 33, 17, 40},
                                                                {5, 40, 72, 12},
                                                                {1, 32, 24, 300},
                                                                {9, 64, 48, 32},
                                                                {7, 200, 8, 100},
                                                                {8, 24, 24, 97},
                                                                {1, 1030, 3, 4},
                                                                {2, 2, 20, 1100}}};
  for (const auto& [heads, key_size, value_size, window] : kShapes) {
    for (const int bits : {0, 4, 9, 16, 18}) {
      for (const StreamStart start : {StreamStart::kMasked, StreamStart::kZeros}) {
        for (const uint64_t position :
             {uint64_t{0}, uint64_t{window} / 2, uint64_t{window} - 1, uint64_t{window} * 3 + 2}) {
          AttentionShape shape{heads, key_size, value_size, window, bits, start, position};
          cases.push_back(AttentionCase("WindowAttention", shape));
          shape.nine_bit_rows = bits == 9 && key_size % 8 == 0 && value_size % 8 == 0;
          if (shape.nine_bit_rows) cases.push_back(AttentionCase("WindowAttention/rows", shape));
        }
      }
    }
  }
  for (const Fill fill : {Fill::kSpecial, Fill::kExtreme, Fill::kZero}) {
    for (const int bits : {0, 9}) {
      AttentionShape shape{2, 24, 32, 97, bits, StreamStart::kMasked, 70, fill};
      cases.push_back(AttentionCase("WindowAttention", shape));
      shape.nine_bit_rows = bits == 9;
      if (shape.nine_bit_rows) cases.push_back(AttentionCase("WindowAttention/rows", shape));
    }
  }
  cases.push_back(AttentionCase("WindowAttention", {1, 2, 2, 2100, 0, StreamStart::kZeros, 3000}));
}

// --- neural cache

OpCase CacheWeightsCase(const std::string& prefix, uint64_t width, uint32_t capacity, int bits,
                        uint64_t position, Fill fill) {
  CaseBuilder builder(CaseName(prefix, {static_cast<int64_t>(width), capacity, bits,
                                        static_cast<int64_t>(position), static_cast<int>(fill)}),
                      width);
  CacheWeights op;
  op.hidden = builder.Vector("hidden", width, bits, fill);
  op.keys = builder.CacheKeys(width, capacity, bits, fill);
  op.capacity = capacity;
  op.theta = 0.0095;
  op.weights = builder.Floats("weights", capacity, Fill::kRandom);
  op.total = builder.Floats("total", 1, Fill::kRandom);
  return builder.Finish(op, fill == Fill::kRandom ? 1e-9 : kNotComparable, position);
}

// A query at a position before, or from, the first position at which the cache contributes.
OpCase LateCacheCase(uint64_t position) {
  OpCase late = CacheWeightsCase("CacheWeights/late", 20, 6, 0, position, Fill::kRandom);
  std::get<CacheWeights>(late.plan.nodes[0].op).first_position = 7;
  return late;
}

OpCase CacheAppendCase(uint64_t width, uint32_t capacity, int bits, uint64_t position) {
  CaseBuilder builder(CaseName("CacheAppend", {static_cast<int64_t>(width), capacity, bits,
                                               static_cast<int64_t>(position)}),
                      width);
  CacheAppend op;
  op.hidden = builder.Vector("hidden", width, bits, Fill::kRandom);
  op.keys = builder.CacheKeys(width, capacity, bits, Fill::kRandom);
  op.tokens = builder.Tokens(capacity);
  op.capacity = capacity;
  return builder.Finish(op, 1e-9, position, 12345);
}

void AddCacheEdges(std::vector<OpCase>& cases) {
  for (const uint64_t width : {1u, 15u, 16u, 17u, 33u, 128u, 1025u}) {
    for (const uint32_t capacity : {1u, 7u, 50u}) {
      for (const int bits : {0, 8, 9, 16, 18}) {
        for (const uint64_t position : {0u, 1u, 6u, 50u, 1000u}) {
          cases.push_back(
              CacheWeightsCase("CacheWeights", width, capacity, bits, position, Fill::kRandom));
          cases.push_back(CacheAppendCase(width, capacity, bits, position));
        }
      }
    }
  }
  for (const uint64_t position : {1u, 6u, 7u, 8u}) cases.push_back(LateCacheCase(position));
  cases.push_back(CacheWeightsCase("CacheWeights", 8193, 3, 9, 5, Fill::kRandom));
  for (const Fill fill : {Fill::kSpecial, Fill::kExtreme, Fill::kZero}) {
    for (const int bits : {0, 9}) {
      cases.push_back(CacheWeightsCase("CacheWeights", 40, 1500, bits, 1400, fill));
    }
  }
}

}  // namespace

void AddAttentionEdges(std::vector<OpCase>& cases) {
  AddWindowEdges(cases);
  AddCacheEdges(cases);
}

void AddRealisticAttentionCases(std::vector<OpCase>& cases) {
  // The demo model has 4 heads of 32, the published best MicroNet 8 of 24.
  for (const int bits : {0, 9}) {
    for (const bool rows : {false, true}) {
      if (rows && bits != 9) continue;
      cases.push_back(AttentionCase(
          "attention.demo", {4, 32, 32, 97, bits, StreamStart::kZeros, 500, Fill::kRandom, rows}));
      cases.push_back(AttentionCase(
          "attention.best", {8, 24, 24, 97, bits, StreamStart::kZeros, 500, Fill::kRandom, rows}));
    }
    cases.push_back(CacheWeightsCase("cache.demo", 128, 2000, bits, 3000, Fill::kRandom));
    cases.push_back(CacheWeightsCase("cache.best", 256, 3000, bits, 4000, Fill::kRandom));
  }
}

}  // namespace kinglet
