#include "tools/keyboard_layout.h"

#include <gtest/gtest.h>

namespace kinglet::keyboard_layout_test {
namespace {

TEST(KeyboardLayout, KeysAreWhereTheRowsHaveThem) {
  const KeyboardLayout layout = KeyboardLayout::Usual();
  EXPECT_EQ(layout.PlaceOf('q')->x, 0);
  EXPECT_EQ(layout.PlaceOf('s')->x, 1.5);
  EXPECT_EQ(layout.PlaceOf('m')->x, 7.5);
  EXPECT_EQ(layout.PlaceOf('m')->y, 2);
  EXPECT_FALSE(layout.PlaceOf('1'));
  EXPECT_EQ(layout.end().x, 9);
  const auto near = layout.At({1.5, 1}, 0.5);
  for (const auto& [character, cost] : near) {
    const double expected = character == 's'   ? 0
                            : character == 'd' ? 2  // 1 / (2 x 0.25)
                            : character == 'w' ? 2.5
                                               : cost;
    EXPECT_EQ(cost, expected);
    EXPECT_NE(character, U'p');
  }
  EXPECT_GT(near.size(), 6u);
  ASSERT_EQ(layout.Nearest({1.4, 0.8}).size(), 1u);
  EXPECT_EQ(layout.Nearest({1.4, 0.8})[0].character, U's');
}

TEST(KeyboardLayout, LayoutsOfAnyScriptAreRead) {
  const auto layout = KeyboardLayout::Parse("\xD0\x99\xD1\x86\r\n a\n", "russian");
  ASSERT_TRUE(layout.ok()) << layout.status().message();
  EXPECT_TRUE(layout->PlaceOf(0x439));  // in lower case
  for (const char* const wrong : {"", " \n", "a b\n", "a\nA\n", "a\xFF"}) {
    const auto refused = KeyboardLayout::Parse(wrong, "wrong.txt");
    EXPECT_EQ(refused.status().code(), KINGLET_INVALID_ARGUMENT) << wrong;
    EXPECT_EQ(refused.status().message().rfind("wrong.txt: row ", 0), 0u);
  }
}

}  // namespace
}  // namespace kinglet::keyboard_layout_test
