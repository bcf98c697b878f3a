// For tests of vector functions, of every instruction set of this machine or of the best one.
#ifndef KINGLET_TESTS_KERNELS_CPU_VECTOR_FIXTURE_H_
#define KINGLET_TESTS_KERNELS_CPU_VECTOR_FIXTURE_H_

#include <gtest/gtest.h>

#include <vector>

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/vector.h"

namespace kinglet::cpu {

// The targets that have vector functions; empty if only the reference kernels run.
inline std::vector<Target> VectorTargets() {
  std::vector<Target> targets = SupportedTargets();
  std::erase(targets, Target::kScalar);
  return targets;
}

class VectorFixture : public testing::Test {
 protected:
  void SetUp() override {
    if (functions_ == nullptr) GTEST_SKIP() << "this machine has no vector target";
  }

  const VectorFunctions* const functions_ = FindVectorFunctions(SupportedTargets().front());
};

}  // namespace kinglet::cpu

#endif  // KINGLET_TESTS_KERNELS_CPU_VECTOR_FIXTURE_H_
