// Every operation as a session of many lanes runs it: close to `ref` if the product is oneDNN's,
// otherwise with `cpu`'s bits.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "kernels/backend.h"
#include "kernels/work_memory.h"
#include "tests/support/op_cases.h"

namespace kinglet::onednn_conformance_test {
namespace {

std::vector<OpCase> AllCases() {
  std::vector<OpCase> cases = EdgeOpCases();
  for (OpCase& op_case : RealisticOpCases()) cases.push_back(std::move(op_case));
  return cases;
}

// Compares the elements of one buffer. NaN must be NaN in both.
void ExpectNear(const std::vector<double>& found, const std::vector<double>& expected,
                const std::string& name) {
  double largest = 0;
  for (const double value : expected) {
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  }
  for (size_t i = 0; i < found.size(); ++i) {
    ASSERT_EQ(std::isfinite(found[i]), std::isfinite(expected[i])) << name << ", element " << i;
    if (!std::isfinite(found[i])) continue;
    ASSERT_NEAR(found[i], expected[i], 1e-5 * largest) << name << ", element " << i;
  }
}

TEST(OnednnConformance, OperationsOfManyLanesEqualRefWithinTheTolerance) {
  const Backend& ref = **FindBackend("ref");
  const Backend& onednn = **FindBackend("onednn");
  size_t of_library = 0, others = 0;
  for (const OpCase& op_case : AllCases()) {
    const BufferLayout layout = LayOut(op_case.plan, sizeof(float)).value();
    const auto expected = ref.bind(op_case.plan, layout, {});
    const auto kernels = onednn.bind(op_case.plan, layout, {});
    ASSERT_TRUE(expected.ok() && kernels.ok()) << op_case.name;
    const Kernel& kernel = kernels->front();
    std::optional<WorkMemory> memory;
    OpRun run(op_case, sizeof(float)), reference(op_case, sizeof(float));
    if (kernel.work_bytes > 0) memory.emplace(1, kernel.work_bytes);
    run.set_batch({memory ? &*memory : nullptr, 64});
    run.Run(kernel);
    reference.Run(expected->front());
    if (!memory) {
      ++others;
      EXPECT_EQ(run.Difference(reference), "") << op_case.name;
      continue;
    }
    ++of_library;
    if (op_case.ref64_tolerance < 0) continue;  // sums that overflow in one order or another
    for (size_t id = 0; id < op_case.plan.buffers.size(); ++id) {
      const auto buffer = static_cast<BufferId>(id);
      ExpectNear(run.Values(buffer), reference.Values(buffer), op_case.name);
    }
  }
  EXPECT_GT(of_library, 8u);
  EXPECT_GT(others, 100u);
}

}  // namespace
}  // namespace kinglet::onednn_conformance_test
