#include "tests/synthesis/published_sparsities.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/synthesis/presets.h"

namespace kinglet::published_sparsities_test {
namespace {

using Json = nlohmann::json;

double EntriesOf(const Json& tensor) {
  double entries = 1;
  for (const double size : tensor["shape"]) entries *= size;
  return entries;
}

Json BestShapes() {
  std::ifstream file(std::string(KINGLET_TEST_DATA) + "/micronet-best-shapes.json");
  return Json::parse(file);
}

double SparsityOf(const Sparsities& sparsities, const std::string& name) {
  const auto found = sparsities.find(name);
  return found == sparsities.end() ? 0 : found->second;
}

TEST(PublishedSparsities, TheBestNetworksAreThoseOfItsFile) {
  const Sparsities sparsities = PrunerTargets(PrunerLevel::k0358);
  const Json tensors = BestShapes()["tensors"];
  size_t named = 0;
  for (const Json& tensor : tensors) {
    const double expected = tensor["final_sparsity"];
    EXPECT_NEAR(SparsityOf(sparsities, tensor["tensor"]), expected, 1e-12) << tensor["tensor"];
    if (expected > 0) ++named;
  }
  EXPECT_EQ(sparsities.size(), named);
  EXPECT_EQ(named, 39u);
}

// The paper calls the levels, and the notebooks print, the fraction of zeros among all parameters.
TEST(PublishedSparsities, TheNetworkAsAWholeHasThePublishedOne) {
  const struct {
    Sparsities sparsities;
    double whole, tolerance;
  } published[] = {{PrunerTargets(PrunerLevel::k0239), 0.239, 5e-4},
                   {PrunerTargets(PrunerLevel::k0358), 0.358, 5e-4},
                   {PrunerTargets(PrunerLevel::k0477), 0.477, 5e-4},
                   {SubmissionSparsities(1), 0.42117, 5e-6},
                   {SubmissionSparsities(2), 0.40198, 5e-6},
                   {SubmissionSparsities(3), 0.33853, 5e-6}};
  const Json tensors = BestShapes()["tensors"];
  for (const auto& row : published) {
    double zeros = 0, entries = 0;
    size_t used = 0;
    for (const Json& tensor : tensors) {
      const double sparsity = SparsityOf(row.sparsities, tensor["tensor"]);
      used += sparsity > 0 ? 1 : 0;
      zeros += sparsity * EntriesOf(tensor);
      entries += EntriesOf(tensor);
    }
    EXPECT_EQ(used, row.sparsities.size());
    EXPECT_NEAR(zeros / entries, row.whole, row.tolerance);
  }
}

}  // namespace
}  // namespace kinglet::published_sparsities_test
