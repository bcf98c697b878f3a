#include "runtime/text/marks.h"

#include <gtest/gtest.h>

namespace kinglet::marks_test {
namespace {

TEST(Marks, AreWordsInBrackets) {
  Marks marks;
  EXPECT_EQ(marks.LengthAt("<unk>"), 0u);
  for (const char* word : {"<UNK>", "[MASK]", "[]", "<a b", "A", "[X]y", "", "<</s>"}) {
    marks.Add(word);
  }
  EXPECT_EQ(marks.LengthAt("[MASK]."), 6u);
  EXPECT_EQ(marks.LengthAt("<UNK><UNK>"), 5u);
  EXPECT_EQ(marks.LengthAt("<</s>"), 5u);
  for (const char* text : {"[MASK", "MASK]", "[]", "A", "[X]y", "<UNKN>", "<unk>", ""}) {
    EXPECT_EQ(marks.LengthAt(text), 0u) << text;
  }
}

}  // namespace
}  // namespace kinglet::marks_test
