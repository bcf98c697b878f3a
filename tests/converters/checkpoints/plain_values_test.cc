#include "converters/checkpoints/plain_values.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "tests/converters/files.h"

namespace kinglet::plain_values_test {
namespace {

using Integers = std::vector<int64_t>;

// make_plain_values.py's objects, as each protocol of Python's pickler wrote them.
class PlainValues : public testing::TestWithParam<int> {
 protected:
  PlainValues()
      : bytes_(Fixture("plain_values_protocol" + std::to_string(GetParam()) + ".pkl")),
        graph_(ReadPickle(Bytes(bytes_), 0)) {}

  const PickleNode& At(std::initializer_list<const char*> keys) {
    const PickleNode* node = graph_->root;
    for (const char* key : keys) {
      const auto* object = node->As<PickleObject>();
      if (object != nullptr) node = object->state;
      node = node->Find(key);
      if (node == nullptr) {
        ADD_FAILURE() << key;
        return *graph_->root;
      }
    }
    return *node;
  }
  std::string Text(std::initializer_list<const char*> keys) {
    const PickleNode& node = At(keys);
    return node.As<std::string>() == nullptr ? node.Describe() : *node.As<std::string>();
  }

  std::string bytes_;
  Result<PickleGraph> graph_;
};
INSTANTIATE_TEST_SUITE_P(Pickle, PlainValues, testing::Values(2, 4, 5));

TEST_P(PlainValues, Numbers) {
  ASSERT_TRUE(graph_.ok()) << graph_.status().message();
  for (const auto& [key, integer] : {std::pair{"int64", -7},
                                     {"int8", -7},
                                     {"uint64", 7},
                                     {"whole", 4},
                                     {"scalar", 5},
                                     {"level", 3}}) {
    EXPECT_EQ(At({key}).Integer(), integer) << key;
    EXPECT_EQ(At({key}).Number(), integer) << key;
  }
  EXPECT_EQ(At({"float64"}).Number(), 0.1);
  EXPECT_EQ(At({"float32"}).Number(), 0.5);
  EXPECT_EQ(At({"half"}).Number(), 0.25);
  for (const char* key : {"part", "huge", "float64", "str", "bool", "big", "enum", "none"}) {
    EXPECT_EQ(At({key}).Integer(), std::nullopt) << key;
  }
  ASSERT_NE(At({"bool"}).As<bool>(), nullptr);
  EXPECT_TRUE(*At({"bool"}).As<bool>());
}

TEST_P(PlainValues, Lists) {
  ASSERT_TRUE(graph_.ok()) << graph_.status().message();
  EXPECT_EQ(At({"integers"}).Integers(), (Integers{1000, 2500}));
  EXPECT_EQ(At({"floats"}).Integers(), (Integers{1, 2}));
  EXPECT_EQ(At({"list"}).Integers(), (Integers{1, 2, 3}));
  EXPECT_EQ(At({"none"}).Integers(), Integers{});
  for (const char* key : {"matrix", "big", "words", "whole"}) {
    EXPECT_EQ(At({key}).Integers(), std::nullopt) << key;
  }
  for (const char* key : {"objects", "texts", "words"}) {
    const auto* list = At({key}).As<PickleList>();
    ASSERT_NE(list, nullptr) << key;
    ASSERT_EQ(list->items.size(), 2U);
    ASSERT_NE(list->items[0]->As<std::string>(), nullptr);
    EXPECT_EQ(*list->items[0]->As<std::string>(), "a");
  }
}

TEST_P(PlainValues, TextsAndBytes) {
  ASSERT_TRUE(graph_.ok()) << graph_.status().message();
  EXPECT_EQ(Text({"str"}), "caf\xc3\xa9");
  EXPECT_EQ(Text({"empty"}), "");
  EXPECT_EQ(Text({"enum"}), "relu");
  EXPECT_EQ(Text({"path"}), "/data/a/b");
  ASSERT_NE(At({"bytes"}).As<PickleBytes>(), nullptr);
  EXPECT_EQ(At({"bytes"}).As<PickleBytes>()->value, std::string("\xff\0a", 3));
  ASSERT_NE(At({"no_bytes"}).As<PickleBytes>(), nullptr);
  EXPECT_EQ(At({"no_bytes"}).As<PickleBytes>()->value, "");
}

TEST_P(PlainValues, Attributes) {
  ASSERT_TRUE(graph_.ok()) << graph_.status().message();
  for (const char* key : {"slots", "dataclass", "subclass"}) {
    EXPECT_EQ(At({key, "width"}).Integer(), 3) << key;
  }
  EXPECT_EQ(Text({"slots", "name"}), "x");
}

TEST_P(PlainValues, ConfigurationsOfOmegaConf) {
  ASSERT_TRUE(graph_.ok()) << graph_.status().message();
  EXPECT_EQ(At({"config", "model", "width"}).Integer(), 8);
  EXPECT_EQ(At({"config", "model", "half"}).Number(), 0.5);
  EXPECT_EQ(At({"config", "model", "same"}).Integer(), 8);
  EXPECT_EQ(At({"config", "model", "far"}).Integer(), 8);
  EXPECT_EQ(At({"config", "model", "layers"}).Integers(), (Integers{1, 2}));
  EXPECT_EQ(At({"config", "name"}).Integers(), (Integers{1, 2}));
  EXPECT_NE(At({"config", "model", "nothing"}).As<PickleNone>(), nullptr);
  EXPECT_EQ(Text({"config", "model", "lost"}), "${model.none}");
}

TEST_P(PlainValues, Arrays) {
  ASSERT_TRUE(graph_.ok()) << graph_.status().message();
  const auto* matrix = At({"matrix"}).As<PickleTensor>();
  ASSERT_NE(matrix, nullptr);
  const auto values = ReadFloats(ElementsInPickle(*matrix, "file"),
                                 {matrix->offset, matrix->shape, matrix->strides});
  ASSERT_TRUE(values.ok()) << values.status().message();
  EXPECT_EQ(matrix->shape, (std::vector<uint64_t>{3, 2}));
  EXPECT_EQ(*values, (std::vector<float>{0, 3, 1, 4, 2, 5}));
}

// A hostile pickle may make objects that contain themselves, and arrays without their bytes.
TEST(PlainValues, Hostile) {
  PickleBuilder build(1 << 20);
  const auto add = [&](decltype(PickleNode::value) value) { return *build.Add(std::move(value)); };
  const auto tuple = [&](std::vector<PickleNode*> items) { return add(PickleList{items}); };
  PickleNode* type =
      *build.Call(*build.AddGlobal("numpy", "dtype"), tuple({add(std::string("f4"))}));
  PickleNode* array =
      *build.Call(*build.AddGlobal("numpy.core.multiarray", "_reconstruct"), tuple({}));
  const auto state = [&](int64_t size) {
    return tuple({add(int64_t{1}), tuple({add(size)}), type, build.boolean(false),
                  add(PickleBytes{"12345678"})});
  };
  for (const int64_t size : {int64_t{3}, int64_t{-1}, INT64_MAX}) {
    const Status status = build.Build(array, state(size));
    EXPECT_NE(status.message().find("the bytes of a NumPy array that its shape takes, found 8"),
              std::string::npos)
        << size << status.message();
  }
  EXPECT_TRUE(build.Build(array, state(2)).ok());
  EXPECT_NE(array->As<PickleTensor>(), nullptr);

  PickleNode* config = *build.Call(*build.AddGlobal("omegaconf", "DictConfig"), tuple({}));
  PickleNode* content = add(PickleDict{});
  PickleNode* settings = add(PickleDict{});
  ASSERT_TRUE(build.SetItem(settings, add(std::string("_content")), content).ok());
  ASSERT_TRUE(build.SetItem(content, add(std::string("a")), content).ok());
  ASSERT_TRUE(build.SetItem(content, add(std::string("b")), content).ok());
  ASSERT_TRUE(build.SetItem(content, add(std::string("c")), add(std::string("${c}"))).ok());
  EXPECT_TRUE(build.Build(config, settings).ok());
  EXPECT_TRUE(build.Complete().ok());

  PickleNode* itself = tuple({});
  PickleNode* function = *build.AddGlobal("torch._tensor", "_rebuild_from_type_v2");
  itself->As<PickleList>()->items = {function, build.none(), itself, build.none()};
  EXPECT_TRUE(build.Call(function, itself).ok());
}

}  // namespace
}  // namespace kinglet::plain_values_test
