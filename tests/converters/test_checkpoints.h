// Folders of checkpoints for tests: those in tests/data, and those in the folder that the
// environment variable KINGLET_CHECKPOINTS names.
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

// A conversion whose output is kept until the process ends.
struct KeptConversion {
  ConvertOptions options;
  Result<ConvertSummary> summary;
};
// Converts with `options`, except that it chooses the output path itself (KeptConversion::options).
// Later calls with the same key return the same conversion and must give the same options.
const KeptConversion& ConvertOnce(const std::string& key, ConvertOptions options);

// The last part of a path, as the name of a test.
std::string FolderTestName(const testing::TestParamInfo<std::string>& instance);

// Copies a checkpoint's folder and converts the copy with `options(copy)`. Expects success with the
// complete file `name`, and a refusal without output when the file is truncated to any of about
// `sizes` sizes.
void ExpectTruncationsRefused(
    const std::string& folder, const std::string& name, size_t sizes,
    const std::function<ConvertOptions(const std::string& copy)>& options);

}  // namespace kinglet

#endif  // KINGLET_TESTS_CONVERTERS_TEST_CHECKPOINTS_H_
