// Folders of checkpoints for tests: those in tests/data, and those in the folder that the
// environment variable KINGLET_CHECKPOINTS names.
#ifndef KINGLET_TESTS_CONVERTERS_TEST_CHECKPOINTS_H_
#define KINGLET_TESTS_CONVERTERS_TEST_CHECKPOINTS_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "converters/convert.h"

namespace kinglet {

// The folders in tests/data/`variants`, sorted, then those of `names` that KINGLET_CHECKPOINTS has.
std::vector<std::string> CheckpointFolders(const std::string& variants,
                                           const std::vector<std::string>& names = {});

// A conversion whose output is kept until the process ends.
struct KeptConversion {
  ConvertOptions options;
  Result<ConvertSummary> summary;
};
// Converts with `options`, except that it chooses the output path itself (KeptConversion::options).
// Later calls with the same key return the same conversion and must give the same options.
const KeptConversion& ConvertOnce(const std::string& key, ConvertOptions options);

// A checkpoint with golden values, in tests/data/`variants` or in KINGLET_CHECKPOINTS.
struct TestCheckpoint {
  std::string folder;
  const char* family;
  double tolerance;  // of its golden values on ref64
  double near;       // how far the mean loss of a text may move with 12 bits
};
// Checkpoints of every family, in an order of their own.
const std::vector<TestCheckpoint>& TestCheckpoints();

// Folders of one family.
std::vector<std::string> FixtureFolders(const std::string& family);
// The last two parts of a path, as the name of a test.
std::string FolderTestName(const testing::TestParamInfo<std::string>& instance);

// What converts a fixture, or a copy of it, and replays its golden values.
ConvertOptions FixtureOptions(const std::string& folder);
// A fixture of its family's tolerance, converted once in a process.
const KeptConversion& ConvertedFixture(const std::string& folder);

}  // namespace kinglet

#endif  // KINGLET_TESTS_CONVERTERS_TEST_CHECKPOINTS_H_
