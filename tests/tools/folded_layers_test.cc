#include "tools/folded_layers.h"

#include <gtest/gtest.h>

namespace kinglet::folded_layers_test {
namespace {

// The rows of these names, of which those with different values are not equal.
std::string Rows(const std::vector<std::string>& names, const std::vector<int>& values = {}) {
  std::string text;
  for (const FoldedRow& row : FoldLayers(
           names, [&](size_t a, size_t b) { return values.empty() || values[a] == values[b]; })) {
    text += row.name;
    for (const size_t member : row.members) text += " " + std::to_string(member);
    text += "\n";
  }
  return text;
}

TEST(FoldedLayers, EqualNeighboursAreOneRowForEachPart) {
  EXPECT_EQ(Rows({"embed", "layers.0.qkv", "layers.0.out", "layers.1.qkv", "layers.1.out", "head"}),
            "embed 0\nlayers.*.qkv 1 3\nlayers.*.out 2 4\nhead 5\n");
  EXPECT_EQ(Rows({"tail.1", "tail.2", "tail.3"}), "tail.* 0 1 2\n");
  EXPECT_EQ(Rows({}), "");
}

TEST(FoldedLayers, OthersStay) {
  // Another value, another list of parts, one layer alone, names without numbers.
  EXPECT_EQ(Rows({"a.0.x", "a.0.y", "a.1.x", "a.1.y", "a.2.x", "a.2.y"}, {1, 2, 1, 3, 1, 3}),
            "a.0.x 0\na.0.y 1\na.*.x 2 4\na.*.y 3 5\n");
  EXPECT_EQ(Rows({"a.0.x", "a.0.y", "a.1.x"}), "a.0.x 0\na.0.y 1\na.1.x 2\n");
  EXPECT_EQ(Rows({"a.0.x", "b.1.x", "c", "c", "d.x1.0y"}),
            "a.0.x 0\nb.1.x 1\nc 2\nc 3\nd.x1.0y 4\n");
}

TEST(FoldedLayers, TheNoteSaysHowMany) {
  const std::vector<std::string> names = {"a.0.x", "a.0.y", "a.1.x", "a.1.y", "b.0", "b.1", "b.2"};
  const auto rows = FoldLayers(names, [](size_t, size_t) { return true; });
  EXPECT_EQ(FoldedNote(rows),
            "a.* x 2: equal layers, each row is their sum (--all lists each)\n"
            "b.* x 3: equal layers, each row is their sum (--all lists each)\n");
  EXPECT_EQ(FoldedNote({}), "");
}

}  // namespace
}  // namespace kinglet::folded_layers_test
