#include "converters/families/frameworks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "converters/families/families.h"

namespace kinglet::frameworks_test {
namespace {

// A family that reads several networks has a framework for each.
TEST(Frameworks, HaveEveryFamily) {
  std::set<std::string_view> names;
  for (const Framework& code : Frameworks()) {
    EXPECT_TRUE(names.insert(code.name).second || code.unread.empty()) << code.name;
    EXPECT_FALSE(code.patterns.empty()) << code.name;
  }
  for (const Family& family : Families()) {
    EXPECT_TRUE(names.contains(family.name)) << family.name;
    names.erase(family.name);
  }
  // The message of a framework without a family states that no family reads it.
  for (const Framework& code : Frameworks()) {
    if (names.contains(code.name)) {
      EXPECT_NE(code.unread.find("no family reads"), std::string_view::npos) << code.name;
    }
  }
}

TEST(Frameworks, PatternsAreWellFormed) {
  for (const Framework& code : Frameworks()) {
    std::set<std::string_view> patterns;
    for (const std::string_view pattern : code.patterns) {
      EXPECT_TRUE(patterns.insert(pattern).second) << code.name << " " << pattern;
      EXPECT_FALSE(pattern.empty() || pattern.ends_with('|') || pattern.find("||") != pattern.npos)
          << pattern;
      const size_t optional = pattern.find('?');
      EXPECT_TRUE(optional == 0 || optional == pattern.npos) << pattern;
      // At most one number in each alternative.
      EXPECT_LE(std::count(pattern.begin(), pattern.end(), '#'),
                1 + std::count(pattern.begin(), pattern.end(), '|'))
          << pattern;
    }
  }
}

}  // namespace
}  // namespace kinglet::frameworks_test
