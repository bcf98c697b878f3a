#include "converters/families/pickled_options.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/converters/module_nodes.h"

namespace kinglet::pickled_options_test {
namespace {

TEST(PickledOptions, ValuesAreAsPythonWritesThem) {
  ModuleNodes nodes;
  EXPECT_EQ(OptionText(*nodes.Add(PickleNone{})), "None");
  EXPECT_EQ(OptionText(*nodes.Add(true)), "True");
  EXPECT_EQ(OptionText(*nodes.Add(int64_t{-3})), "-3");
  EXPECT_EQ(OptionText(*nodes.Add(0.1)), "0.1");
  EXPECT_EQ(OptionText(*nodes.Add(1e-6)), "1e-06");
  EXPECT_EQ(OptionText(*nodes.Add(4.0)), "4");
  EXPECT_EQ(OptionText(*nodes.Add(std::string("re\nlu"))), "'re\\x0alu'");
  EXPECT_EQ(OptionText(*nodes.Add(PickleList{})), "[]");
  PickleNode* pair = nodes.Add(PickleList{{nodes.Add(int64_t{1}), nodes.Add(std::string("a"))}});
  EXPECT_EQ(OptionText(*pair), "[1, 'a']");
  EXPECT_EQ(OptionText(*nodes.Add(PickleList{{pair}})), "list");
  EXPECT_EQ(OptionText(*nodes.Add(PickleDict{})), "dict");
}

TEST(PickledOptions, DictsAndObjects) {
  ModuleNodes nodes;
  PickleDict dict;
  dict.items.emplace_back(nodes.Add(std::string("heads")), nodes.Add(int64_t{8}));
  dict.items.emplace_back(nodes.Add(int64_t{5}), nodes.Add(false));
  PickleObject object;
  object.class_name = "argparse.Namespace";
  object.state = nodes.Add(dict);
  for (const PickleNode* options : {nodes.Add(dict), nodes.Add(object)}) {
    const auto stated = PickledOptions(*options);
    ASSERT_EQ(stated.size(), 2u);
    EXPECT_EQ(stated[0].name, "heads");
    EXPECT_EQ(stated[0].value, "8");
    EXPECT_EQ(stated[1].name, "5");
    EXPECT_EQ(PickledOption(*options, "heads")->As<int64_t>()[0], 8);
    EXPECT_EQ(PickledOption(*options, "none"), nullptr);
  }
  EXPECT_TRUE(PickledOptions(*nodes.Add(int64_t{3})).empty());
  EXPECT_TRUE(PickledOptions(*nodes.Add(PickleObject{})).empty());
  EXPECT_EQ(PickledOption(*nodes.Add(PickleObject{}), "heads"), nullptr);
}

}  // namespace
}  // namespace kinglet::pickled_options_test
