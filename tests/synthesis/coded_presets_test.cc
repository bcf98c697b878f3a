#include "tests/synthesis/coded_presets.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/synthesis/presets.h"

namespace kinglet::coded_presets_test {
namespace {

TEST(CodedPresets, NamesAreUniqueAndFound) {
  std::set<std::string> names;
  for (const Preset& preset : Presets()) names.insert(preset.spec.name);
  const std::string table = CodedPresetTable();
  for (const CodedPreset& preset : CodedPresets()) {
    EXPECT_TRUE(names.insert(preset.spec.name).second) << preset.spec.name;
    EXPECT_FALSE(preset.source.empty());
    EXPECT_NE(table.find("\n" + preset.spec.name + " "), std::string::npos) << table;
    ASSERT_TRUE(FindCodedPreset(preset.spec.name));
    EXPECT_TRUE(OutlineCoded(preset.spec).ok()) << preset.spec.name;
  }
  EXPECT_EQ(static_cast<size_t>(std::count(table.begin(), table.end(), '\n')),
            CodedPresets().size() + 1);
  EXPECT_FALSE(FindCodedPreset("8.3M"));
  EXPECT_FALSE(FindCodedPreset(""));
}

// The One Billion Word shape: 793,471 sub-vectors in 8 pools.
TEST(CodedPresets, SlimPoolsAreEven) {
  const auto pools = FindCodedPreset("slim-billion-2")->spec.output->pools;
  EXPECT_EQ(pools.size(), 8u);
  EXPECT_EQ(std::count(pools.begin(), pools.end(), 99184u), 7);
  EXPECT_EQ(std::count(pools.begin(), pools.end(), 99183u), 1);
}

}  // namespace
}  // namespace kinglet::coded_presets_test
