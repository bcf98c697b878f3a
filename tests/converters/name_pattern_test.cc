#include "converters/name_pattern.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace kinglet::name_pattern_test {
namespace {

TEST(MatchesPattern, AStarStandsForAnyText) {
  const struct {
    std::string_view pattern, name;
    bool matches;
  } cases[] = {{"", "", true},          {"", "a", false},      {"*", "", true},
               {"*", "abc", true},      {"a*", "a", true},     {"a*c", "abc", true},
               {"a*c", "abcd", false},  {"*b*", "abc", true},  {"*bc", "abbc", true},
               {"a**c", "ac", true},    {"a.c", "abc", false}, {"*ab*ab", "abab", true},
               {"*ab*ab", "abb", false}};
  for (const auto& [pattern, name, matches] : cases) {
    EXPECT_EQ(MatchesPattern(pattern, name), matches) << pattern << " " << name;
  }
  // The time does not grow exponentially with the stars.
  std::string stars;
  for (int i = 0; i < 1000; ++i) stars += "*a";
  EXPECT_FALSE(MatchesPattern(stars + "b", std::string(3000, 'a')));
}

}  // namespace
}  // namespace kinglet::name_pattern_test
