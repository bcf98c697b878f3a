// Every kind of node has a kernel of its own.
#include "kernels/cuda/node_kernels.h"

#include <gtest/gtest.h>

#include <set>

#include "kernels/cuda/operations.h"

namespace kinglet::cuda::node_kernels_test {
namespace {

template <class... A>
std::set<NodeKernel> KernelsOf(ArgumentList<A...>) {
  return {KernelOf(MakeNode(A{}))...};
}
template <class... A>
constexpr size_t CountOf(ArgumentList<A...>) {
  return sizeof...(A);
}

TEST(NodeKernels, AreEachOfOneOperation) {
  const std::set<NodeKernel> kernels = KernelsOf(Operations());
  EXPECT_EQ(kernels.size(), CountOf(Operations()));
  EXPECT_EQ(kernels.count(nullptr), 0u);
}

}  // namespace
}  // namespace kinglet::cuda::node_kernels_test
