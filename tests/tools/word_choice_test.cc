#include "tools/word_choice.h"

#include <gtest/gtest.h>

#include "tests/tools/run_command.h"

namespace kinglet::word_choice_test {
namespace {

TEST(WordChoice, IsNothingWhereAllWordsAreAllowed) {
  const auto model = *Model::FromBytes(*SerialiseModel(TinyMicronet()), {});
  EXPECT_FALSE(ChooseWords({}, *model)->has_value());
  EXPECT_FALSE(ChooseWords({.excluded = 2}, *model)->has_value());
  EXPECT_EQ((*ChooseWords({.prefix = ""}, *model))->size(), 23u);
  EXPECT_EQ((*ChooseWords({.prefix = "w1", .excluded = 10}, *model))->size(), 9u);
  EXPECT_EQ(ChooseWords({.allowed = "no/such/file"}, *model).status().code(), KINGLET_NOT_FOUND);
}

TEST(WordChoice, NeedsTheTextsOfWords) {
  const auto model = *Model::FromBytes(*SerialiseModel(TinyMicronet({.vocabulary = false})), {});
  EXPECT_EQ(ChooseWords({.prefix = "w"}, *model).status().code(), KINGLET_UNSUPPORTED);
}

}  // namespace
}  // namespace kinglet::word_choice_test
