// Rows by position, for lanes at positions of their own, and over an entire source. The conformance
// test has single tokens.
#include "kernels/cuda/positions.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "tests/kernels/cuda/lanes.h"
#include "tests/support/case_builder.h"

namespace kinglet::cuda::positions_test {
namespace {

TEST(CudaPositions, WindowsGoRoundForEachLane) {
  CaseBuilder builder("positions ", 1);
  const BufferId y = builder.Floats("y", 34, Fill::kRandom);
  const WeightId frequencies = builder.DenseVector(17),
                 table = builder.Matrix(5, 34, Storage::kF32, 0);
  OpCase op_case = builder.Finish(AddPositionRow{table, 5, y});
  op_case.plan.nodes.push_back({"sinusoids", AddSinusoids{frequencies, 2, 7, y}});
  Lanes lanes(op_case, 3);
  for (uint64_t i = 0; i < 15; ++i) {
    lanes.Randomise(y);
    lanes.RunAt({{i}, {i + 4}, {(uint64_t{1} << 40) + 3 * i}});
  }
}

TEST(CudaPositions, RowsOfASourceAreKept) {
  for (const int bits : {0, 9}) {
    CaseBuilder builder("rows ", 1);
    const BufferId x = builder.Vector("x", 300, bits, Fill::kRandom);
    const BufferId rows = builder.Vector("rows", 6 * 300, bits, Fill::kRandom, true);
    const BufferId loaded = builder.Vector("loaded", 300, bits, Fill::kRandom);
    OpCase op_case = builder.Finish(StoreRow{x, rows});
    op_case.plan.nodes.push_back({"load", LoadRow{rows, loaded}});
    Lanes lanes(op_case, 2);
    for (uint64_t i = 0; i < 6; ++i) {
      lanes.Randomise(x);
      lanes.RunAt({{i, 6}, {5 - i, 6}});
    }
  }
}

}  // namespace
}  // namespace kinglet::cuda::positions_test
