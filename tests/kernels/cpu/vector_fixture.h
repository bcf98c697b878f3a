// For tests that need some instruction set's vector functions, whichever is best here.
#ifndef KINGLET_TESTS_KERNELS_CPU_VECTOR_FIXTURE_H_
#define KINGLET_TESTS_KERNELS_CPU_VECTOR_FIXTURE_H_

#include <gtest/gtest.h>

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/vector.h"

namespace kinglet::cpu {

class VectorFixture : public testing::Test {
 protected:
  void SetUp() override {
    if (functions_ == nullptr) GTEST_SKIP() << "this machine has no vector target";
  }

  const VectorFunctions* const functions_ = FindVectorFunctions(SupportedTargets().front());
};

}  // namespace kinglet::cpu

#endif  // KINGLET_TESTS_KERNELS_CPU_VECTOR_FIXTURE_H_
