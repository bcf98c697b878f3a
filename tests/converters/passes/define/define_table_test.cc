#include "converters/passes/define/define_table.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "converters/passes/define/define_layer.h"
#include "tests/converters/passes/flat_fixture.h"
#include "tests/support/define_units.h"
#include "tests/support/model_builder.h"

namespace kinglet::define_table_test {
namespace {

constexpr uint64_t kWords = kDefineWords, kMapWidth = kDefineMapWidth;

struct Example {
  DefineMap map;
  std::vector<DefineWeights> weights;
  std::vector<double> table;
};

uint64_t Entries(const Shape& shape) { return shape.empty() ? 0 : Count(shape); }

Example ReadExample(const NamedUnit& named) {
  const auto& [name, unit, map_scale] = named;
  FlatFixture fixture("define/unit_" + name + ".npy");
  Example example;
  DefineBand& band = example.map.emplace_back();
  band.words = kWords;
  band.width = kMapWidth;
  band.scale = map_scale;
  band.table = fixture.Take<float>(kWords * kMapWidth);
  for (const DefineLayer& layer : unit.layers) {
    const DefineShapes shapes = ShapesOf(layer);
    DefineWeights& values = example.weights.emplace_back();
    values.weight = fixture.Take<float>(Entries(shapes.weight));
    values.bias = fixture.Take<float>(Entries(shapes.bias));
    values.norm_gain = fixture.Take<float>(Entries(shapes.norm_gain));
    values.norm_offset = fixture.Take<float>(Entries(shapes.norm_offset));
  }
  example.table = fixture.Take<double>(kWords * OutputWidth(unit));
  EXPECT_EQ(fixture.left(), 0U) << name;
  return example;
}

TEST(DefineTable, EqualsPyTorchInDoublePrecision) {
  for (const NamedUnit& named : DefineUnits()) {
    const Example example = ReadExample(named);
    const auto table = DefineTable(example.map, named.unit, example.weights, 1);
    ASSERT_TRUE(table.ok()) << named.name << ": " << table.status().message();
    // One rounding to float32.
    EXPECT_LT(LargestDifference(*table, example.table), 6.1e-8) << named.name;
  }
}

TEST(DefineTable, TheSameBitsForAnyNumberOfThreads) {
  TestRandom random(3);
  const NamedUnit named = DefineUnits()[4];
  const DefineUnit& unit = named.unit;
  Example example = ReadExample(named);
  for (const uint64_t words : {1, 31, 32, 33, 200}) {
    DefineBand& band = example.map[0];
    band.words = words;
    band.table.resize(words * kMapWidth);
    for (float& entry : band.table) entry = random.Signed();
    const auto one = DefineTable(example.map, unit, example.weights, 1);
    ASSERT_TRUE(one.ok());
    ASSERT_EQ(one->size(), words * OutputWidth(unit));
    for (const size_t threads : {2, 3, 64}) {
      const auto many = DefineTable(example.map, unit, example.weights, threads);
      ASSERT_TRUE(many.ok());
      EXPECT_EQ(*one, *many) << words << " words, " << threads << " threads";
    }
  }
}

TEST(DefineTable, BandsAreCountedThroughAndProjected) {
  // 40 words of 2 features, none, then 3 of 1 feature, projected to 2; no layers.
  DefineMap map(3);
  map[0].words = 40;
  map[0].width = 2;
  map[0].scale = 1;
  for (int i = 0; i < 80; ++i) map[0].table.push_back(static_cast<float>(i));
  map[1].width = 2;
  map[2].words = 3;
  map[2].width = 1;
  map[2].scale = 5;
  map[2].table = {1, 2, 3};
  map[2].projection = {1, -1};
  DefineUnit unit;
  unit.map_width = 2;
  ASSERT_EQ(Words(map), 43U);
  for (const size_t threads : {1, 2}) {
    const auto table = DefineTable(map, unit, {}, threads);
    ASSERT_TRUE(table.ok()) << table.status().message();
    std::vector<float> expected = map[0].table;
    expected.insert(expected.end(), {5, -5, 10, -10, 15, -15});
    EXPECT_EQ(*table, expected);
  }
}

TEST(DefineTable, RefusesMapsThatDoNotFit) {
  const DefineUnit unit = DefineUnits()[0].unit;
  const Example example = ReadExample(DefineUnits()[0]);
  const auto refusal = [&](auto change) {
    DefineMap map = example.map;
    change(map);
    const auto table = DefineTable(map, unit, example.weights, 2);
    return table.ok() ? "accepted" : table.status().message();
  };
  EXPECT_EQ(refusal([](DefineMap& map) { map.clear(); }),
            "define map: words: expected at least 1, found 0");
  EXPECT_EQ(refusal([](DefineMap& map) { map[0].table.pop_back(); }),
            "define map: band 0, table: expected 420 entries as [35, 12], found 419");
  EXPECT_EQ(refusal([](DefineMap& map) { map[0].words = uint64_t{1} << 62; }),
            "define map: band 0, table: expected fewer than 2^64 entries, found "
            "[4611686018427387904, 12]");
  EXPECT_EQ(refusal([](DefineMap& map) { map[0].width = 0; }),
            "define map: band 0, width: expected 1 to 65536, found 0");
  EXPECT_EQ(refusal([](DefineMap& map) {
              map[0].width = 6;
              map[0].words = 70;
            }),
            "define map: band 0, width: expected 12, as there is no projection, found 6");
  EXPECT_EQ(refusal([](DefineMap& map) { map[0].projection.resize(143); }),
            "define map: band 0, projection: expected 144 entries as [12, 12], found 143");
  EXPECT_EQ(refusal([](DefineMap& map) { map[0].table[5] = INFINITY; }),
            "define map: band 0, table, entry 5: expected a finite number, found infinity");
  EXPECT_EQ(refusal([](DefineMap& map) { map[0].scale = NAN; }),
            "define map: band 0, scale: expected a finite number, found another");
}

TEST(DefineTable, RefusesTablesBeyondTheLimitBeforeAllocating) {
  DefineMap map(1);
  map[0].words = 65537;
  map[0].width = 1;
  map[0].table.resize(65537);
  DefineUnit unit;
  unit.map_width = 1;
  unit.layers = {{.in = 1, .out = kLargestDefineWidth, .bias = DefineLayer::Bias::kNone}};
  std::vector<DefineWeights> weights(1);
  weights[0].weight.resize(kLargestDefineWidth);
  const auto table = DefineTable(map, unit, weights, 1);
  ASSERT_FALSE(table.ok());
  EXPECT_EQ(table.status().message(),
            "define table: size: expected at most 2^32 entries, found [65537, 65536]");
}

TEST(DefineTable, NamesTheFirstWordThatFloat32CannotHold) {
  DefineMap map(1);
  map[0].words = 100;
  map[0].width = 2;
  map[0].table.assign(200, 1);
  map[0].table[2 * 70 + 1] = std::numeric_limits<float>::max();
  map[0].table[2 * 99] = std::numeric_limits<float>::max();
  DefineUnit unit;
  unit.map_width = 2;
  map[0].scale = 10;
  for (const size_t threads : {1, 4}) {
    const auto table = DefineTable(map, unit, {}, threads);
    ASSERT_FALSE(table.ok());
    EXPECT_EQ(table.status().code(), KINGLET_NOT_FINITE);
    EXPECT_EQ(table.status().message(),
              "define table: word 70, feature 1: expected a finite float32, found infinity");
  }
}

}  // namespace
}  // namespace kinglet::define_table_test
