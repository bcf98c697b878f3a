#include "runtime/text/lower_case.h"

#include <gtest/gtest.h>

namespace kinglet::lower_case_test {
namespace {

TEST(LowerCase, KnowsTheLettersOfManyScripts) {
  const std::pair<uint32_t, uint32_t> pairs[] = {
      {'A', 'a'},         {'z', 'z'},          {0xC9, 0xE9},     {0xD7, 0xD7},
      {0x100, 0x101},     {0x101, 0x101},      {0x130, 0x130},   {0x178, 0xFF},
      {0x1C5, 0x1C6},     {0x391, 0x3B1},      {0x3A3, 0x3C3},   {0x410, 0x430},
      {0x10A0, 0x2D00},   {0x13A0, 0xAB70},    {0x1E9E, 0xDF},   {0x212A, 'k'},
      {0x24B6, 0x24D0},   {0xA77D, 0x1D79},    {0xFF21, 0xFF41}, {0x10400, 0x10428},
      {0x1E900, 0x1E922}, {0x10FFFF, 0x10FFFF}};
  for (const auto& [upper, lower] : pairs) EXPECT_EQ(LowerCase(upper), lower) << upper;
}

TEST(LowerCase, KeepsWhereBytesComeFrom) {
  const NormalisedText made = LowerCase("A\xE2\x84\xAA\xFF");  // the Kelvin sign has a short form
  EXPECT_EQ(made.text, "ak\xFF");
  EXPECT_EQ(made.origins, (std::vector<uint32_t>{0, 1, 4, 5}));
}

}  // namespace
}  // namespace kinglet::lower_case_test
