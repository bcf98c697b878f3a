// The states of several lanes over some tokens.
#include "kernels/cuda/recurrent.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/kernels/cuda/lane_runs.h"
#include "tests/support/case_builder.h"
#include "tests/support/recurrent_cases.h"

namespace kinglet::cuda::recurrent_test {
namespace {

TEST(CudaRecurrent, StatesContinueFromTokenToToken) {
  std::vector<OpCase> cases;
  AddRecurrentEdges(cases);
  for (size_t i = 0; i < cases.size(); i += 7) {
    ExpectLanesSameAsRef(cases[i], std::vector<TokenAt>(3), 3);
  }
}

}  // namespace
}  // namespace kinglet::cuda::recurrent_test
