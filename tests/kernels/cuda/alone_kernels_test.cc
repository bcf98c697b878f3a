// Which kinds of steps have a kernel of their own.
#include "kernels/cuda/alone_kernels.h"

#include <gtest/gtest.h>

#include "kernels/cuda/operations.h"

namespace kinglet::cuda::alone_kernels_test {
namespace {

template <class... A>
void ExpectKernels(ArgumentList<A...>) {
  const auto check = [](const Step& step) {
    EXPECT_EQ(FindAloneKernel(step) != nullptr, step.alone_from_lanes != UINT32_MAX) << step.kind;
  };
  (check(MakeStep(A{})), ...);
}

TEST(AloneKernels, AreThereForEveryStepThatMayRunAlone) { ExpectKernels(Operations()); }

TEST(AloneKernels, AreEachOfOneOperation) {
  EXPECT_NE(FindAloneKernel(MakeStep(LargestOfProducts{})),
            FindAloneKernel(MakeStep(TermsOfProducts{})));
  EXPECT_EQ(FindAloneKernel(MakeStep(AddOne{})), nullptr);
}

}  // namespace
}  // namespace kinglet::cuda::alone_kernels_test
