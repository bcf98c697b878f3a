// Checkpoints that tests run through, one folder each: those of the tree, and those of the folder
// that the environment variable KINGLET_CHECKPOINTS names.
#ifndef KINGLET_TESTS_CONVERTERS_TEST_CHECKPOINTS_H_
#define KINGLET_TESTS_CONVERTERS_TEST_CHECKPOINTS_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "converters/convert.h"

namespace kinglet {

// The folders in tests/data/`variants`, sorted, then those of `names` that KINGLET_CHECKPOINTS has.
std::vector<std::string> CheckpointFolders(const std::string& variants,
                                           const std::vector<std::string>& names = {});

// A conversion and the file it made, which is gone when the process ends.
struct KeptConversion {
  ConvertOptions options;
  Result<ConvertSummary> summary;
};
// Converts as `options` say, but for the output, which is options.output of what is returned. Cases
// that give the same key share one conversion; the options must then be the same.
const KeptConversion& ConvertOnce(const std::string& key, ConvertOptions options);

// The last part of a path, as the name of a test.
std::string FolderTestName(const testing::TestParamInfo<std::string>& instance);

// Expects a copy of a checkpoint's folder, converted as `options(copy)` says, to be refused and to
// leave no output if the file `name` in it is cut short at any of about `cuts` places, but not if
// it is whole.
void ExpectCutsRefused(const std::string& folder, const std::string& name, size_t cuts,
                       const std::function<ConvertOptions(const std::string& copy)>& options);

}  // namespace kinglet

#endif  // KINGLET_TESTS_CONVERTERS_TEST_CHECKPOINTS_H_
