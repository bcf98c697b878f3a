// Mirrors converters/checkpoints/pickle_node.cc.
#include <gtest/gtest.h>

#include "converters/checkpoints/pickle.h"

namespace kinglet::pickle_node_test {
namespace {

// The names of torch's storage classes, and the bytes of their elements.
TEST(StorageElementType, KnowsTorchsNames) {
  const std::pair<const char*, size_t> expected[] = {
      {"DoubleStorage", 8}, {"FloatStorage", 4}, {"HalfStorage", 2},  {"BFloat16Storage", 2},
      {"LongStorage", 8},   {"IntStorage", 4},   {"ShortStorage", 2}, {"CharStorage", 1},
      {"ByteStorage", 1},   {"BoolStorage", 1}};
  for (const auto& [name, bytes] : expected) {
    ASSERT_TRUE(StorageElementType(name).has_value()) << name;
    EXPECT_EQ(ElementBytes(*StorageElementType(name)), bytes) << name;
  }
  EXPECT_EQ(StorageElementType("ComplexFloatStorage"), std::nullopt);
  EXPECT_EQ(StorageElementType(""), std::nullopt);
}

TEST(PickleNode, FindsTheLastEntryOfAKey) {
  PickleNode a{std::string("a")}, b{std::string("b")}, one{int64_t{1}}, two{int64_t{2}};
  PickleNode dict{PickleDict{{{&a, &one}, {&one, &one}, {&b, &one}, {&a, &two}}}};
  EXPECT_EQ(dict.Find("a"), &two);
  EXPECT_EQ(dict.Find("b"), &one);
  EXPECT_EQ(dict.Find("c"), nullptr);
  EXPECT_EQ(a.Find("a"), nullptr);
}

TEST(PickleNode, DescribesItself) {
  EXPECT_EQ(PickleNode{PickleNone{}}.Describe(), "None");
  EXPECT_EQ(PickleNode{true}.Describe(), "bool");
  EXPECT_EQ(PickleNode{int64_t{1}}.Describe(), "int");
  EXPECT_EQ(PickleNode{1.0}.Describe(), "float");
  EXPECT_EQ(PickleNode{std::string()}.Describe(), "str");
  EXPECT_EQ(PickleNode{PickleBytes{}}.Describe(), "bytes");
  EXPECT_EQ(PickleNode{PickleList{}}.Describe(), "list");
  EXPECT_EQ(PickleNode{PickleDict{}}.Describe(), "dict");
  EXPECT_EQ(PickleNode{PickleTensor{}}.Describe(), "tensor");
  EXPECT_EQ((PickleNode{PickleGlobal{"os", "system"}}.Describe()), "class or function 'os.system'");
  PickleObject object;
  object.class_name = "a\nb";
  EXPECT_EQ(PickleNode{object}.Describe(), "object of class 'a\\x0ab'");
}

}  // namespace
}  // namespace kinglet::pickle_node_test
