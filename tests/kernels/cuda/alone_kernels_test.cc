// Which kinds of nodes have a kernel of their own.
#include "kernels/cuda/alone_kernels.h"

#include <gtest/gtest.h>

#include "kernels/cuda/operations.h"

namespace kinglet::cuda::alone_kernels_test {
namespace {

template <class... A>
void ExpectKernels(ArgumentList<A...>) {
  const auto check = [](const Node& node) {
    EXPECT_EQ(FindAloneKernel(node) != nullptr, node.alone_from_lanes != UINT32_MAX) << node.kind;
  };
  (check(MakeNode(A{})), ...);
}

TEST(AloneKernels, ExistForEveryNodeThatMayRunAlone) { ExpectKernels(Operations()); }

TEST(AloneKernels, AreEachOfOneOperation) {
  EXPECT_NE(FindAloneKernel(MakeNode(SumsOfProducts{})), FindAloneKernel(MakeNode(RankTokens{})));
  EXPECT_EQ(FindAloneKernel(MakeNode(AddOne{})), nullptr);
}

}  // namespace
}  // namespace kinglet::cuda::alone_kernels_test
