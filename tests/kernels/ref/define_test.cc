// Rows of DeFINE units against PyTorch's own functions in float64 (tests/data/define).
#include "kernels/ref/define.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/ref/ref.h"
#include "tests/converters/passes/flat_fixture.h"
#include "tests/support/define_cases.h"

namespace kinglet::define_test {
namespace {

struct Example {
  std::vector<float> map;
  std::vector<LayerValues> layers;
  std::vector<double> table;
};

uint64_t Entries(const Shape& shape) { return shape.empty() ? 0 : Count(shape); }

Example ReadExample(const NamedUnit& named) {
  FlatFixture fixture("define/unit_" + named.name + ".npy");
  Example example;
  example.map = fixture.Take<float>(kDefineWords * kDefineMapWidth);
  for (const DefineLayer& layer : named.unit.layers) {
    const DefineShapes shapes = ShapesOf(layer);
    LayerValues& values = example.layers.emplace_back();
    values.weight = fixture.Take<float>(Entries(shapes.weight));
    values.bias = fixture.Take<float>(Entries(shapes.bias));
    values.norm_gain = fixture.Take<float>(Entries(shapes.norm_gain));
    values.norm_offset = fixture.Take<float>(Entries(shapes.norm_offset));
  }
  example.table = fixture.Take<double>(kDefineWords * OutputWidth(named.unit));
  return example;
}

std::vector<double> Row(const OpCase& op_case, size_t real_bytes) {
  const BufferLayout layout = LayOut(op_case.plan, real_bytes).value();
  const auto kernels = real_bytes == sizeof(double) ? ref::BindDouble(op_case.plan, layout)
                                                    : ref::BindFloat(op_case.plan, layout);
  OpRun run(op_case, real_bytes);
  run.Run(kernels.value().front());
  return run.Values(std::get<EmbedRow>(op_case.plan.nodes[0].op).out);
}

TEST(DefineRow, EqualsPyTorchInDoublePrecision) {
  for (const NamedUnit& named : DefineUnits()) {
    const Example example = ReadExample(named);
    const auto width = static_cast<std::ptrdiff_t>(OutputWidth(named.unit));
    for (uint32_t token = 0; token < kDefineWords; ++token) {
      const OpCase op_case = DefineRowCase(named, example.map, example.layers, 3, token);
      const auto first = example.table.begin() + token * width;
      const std::vector<double> expected(first, first + width);
      EXPECT_LT(LargestDifference(Row(op_case, sizeof(double)), expected), 1e-13) << named.name;
      EXPECT_LT(LargestDifference(Row(op_case, sizeof(float)), expected), 3e-6) << named.name;
    }
  }
}

// The cache returns what was computed, and a cached row is not computed again.
TEST(DefineRow, IsTakenFromTheCache) {
  const NamedUnit named = DefineUnits()[4];
  const Example example = ReadExample(named);
  const OpCase op_case = DefineRowCase(named, example.map, example.layers, 2, 7);
  const EmbedRow& op = std::get<EmbedRow>(op_case.plan.nodes[0].op);
  const BufferLayout layout = LayOut(op_case.plan, sizeof(float)).value();
  const auto kernels = ref::BindFloat(op_case.plan, layout);
  OpRun run(op_case, sizeof(float));
  run.Run(kernels.value().front());
  const std::vector<double> computed = run.Values(op.out);
  const std::vector<double> rows = run.Values(op.units[0].rows);
  EXPECT_TRUE(std::equal(computed.begin(), computed.end(), rows.begin()));

  // A copy of the case whose cache contains another row's values.
  OpCase cached = op_case;
  std::vector<float> other_row(rows.size(), 0.25F);
  cached.contents[static_cast<size_t>(op.units[0].rows)].floats = other_row;
  cached.contents[static_cast<size_t>(op.units[0].row_index)].integers = {8, 0, 0, 0};
  OpRun again(cached, sizeof(float));
  again.Run(kernels.value().front());
  EXPECT_EQ(again.Values(op.out), std::vector<double>(OutputWidth(named.unit), 0.25));
}

}  // namespace
}  // namespace kinglet::define_test
