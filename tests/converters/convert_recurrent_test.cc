// What only recurrent networks have. Their numbers: convert_fixtures_test.cc.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "converters/convert.h"
#include "tests/converters/synthetic.h"
#include "tests/converters/test_checkpoints.h"

namespace kinglet::convert_recurrent_test {
namespace {

namespace fs = std::filesystem;

// TensorFlow's own checkpoint has the tensors of the .npz that is made of it, so the model's bytes
// are the same but for the checkpoint's name and digest.
TEST(ConvertRecurrentFiles, ATensorFlowCheckpointIsReadAsItsExport) {
  const char* more = std::getenv("KINGLET_CHECKPOINTS");
  const std::string folder = std::string(more == nullptr ? "" : more) + "/dpq-lm-sx";
  if (more == nullptr || !fs::exists(folder)) GTEST_SKIP() << "KINGLET_CHECKPOINTS has none";
  const TemporaryFolder output;
  for (const char* name : {"/model.npz", "/model-3860.index", "/model-3860"}) {
    ConvertOptions options = FixtureOptions(folder);
    options.output = output.Path("model.kgl");
    options.checkpoint = folder + name;
    const auto summary = Convert(options);
    ASSERT_TRUE(summary.ok()) << summary.status().message();
    EXPECT_EQ(summary->family, "zaremba-tf");
    EXPECT_EQ(summary->golden_positions, 399u);
    EXPECT_LE(summary->golden_largest_difference, 1e-6);
  }
}

// A cache added to this family has CacheStart::kPastCapacity, as its framework has.
TEST(ConvertRecurrentFiles, TheCacheHasTheFamilysStart) {
  const TemporaryFolder folder;
  ConvertOptions options = FixtureOptions(KINGLET_TEST_DATA "/recurrent-variants/awd-lstm-split");
  options.output = folder.Path("model.kgl");
  options.golden = options.ids = "";
  options.cache_capacity = 9;
  EXPECT_FALSE(Convert(options).ok());  // theta and lambda have no default
  options.cache_theta = 0.5;
  options.cache_lambda = 0.25;
  ASSERT_TRUE(Convert(options).ok());
  const auto file = *ModelFile::Open(options.output);
  const auto* cache = FindBlock<NeuralCache>(file->description());
  ASSERT_NE(cache, nullptr);
  EXPECT_EQ(cache->start, CacheStart::kPastCapacity);
  EXPECT_EQ(cache->capacity, 9u);
}

}  // namespace
}  // namespace kinglet::convert_recurrent_test
