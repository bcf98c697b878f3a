#include "converters/checkpoints/pickle_builder.h"

#include <gtest/gtest.h>

#include <initializer_list>

namespace kinglet::pickle_builder_test {
namespace {

struct PickleBuilderTest : testing::Test {
  PickleNode* Node(decltype(PickleNode::value) value) { return *build.Add(std::move(value)); }
  PickleNode* Tuple(std::initializer_list<PickleNode*> items) { return Node(PickleList{items}); }
  PickleNode* Int(int64_t value) { return Node(value); }
  PickleNode* Str(const char* text) { return Node(std::string(text)); }
  PickleNode* Class(const char* module, const char* name) { return *build.AddGlobal(module, name); }
  PickleNode* FloatStorage(const char* key, int64_t elements, PickleNode* view = nullptr) {
    PickleNode* id = Tuple({Str("storage"), Class("torch", "FloatStorage"), Str(key), Str("cpu"),
                            Int(elements), view == nullptr ? build.none() : view});
    const Result<PickleNode*> storage = build.Resolve(id);
    EXPECT_TRUE(storage.ok()) << storage.status().message();
    return *storage;
  }
  Result<PickleNode*> Tensor(PickleNode* storage, int64_t offset, PickleNode* size,
                             PickleNode* stride) {
    return build.Call(Class("torch._utils", "_rebuild_tensor_v2"),
                      Tuple({storage, Int(offset), size, stride, build.boolean(false)}));
  }
  std::string Refusal(const Result<PickleNode*>& result) {
    if (result.ok()) return "accepted as " + (*result)->Describe();
    EXPECT_EQ(result.status().code(), KINGLET_INVALID_CHECKPOINT);
    const std::string& message = result.status().message();
    return message.substr(message.find("expected"));
  }
  PickleBuilder build{1 << 20};
};

// The 7th argument of _rebuild_tensor_v2.
TEST_F(PickleBuilderTest, MarksOfAView) {
  PickleNode* storage = FloatStorage("7", 10);
  PickleNode* longs = *build.Resolve(
      Tuple({Str("storage"), Class("torch", "LongStorage"), Str("8"), Str("cpu"), Int(10)}));
  const auto with = [&](PickleNode* elements, PickleNode* marks) {
    return build.Call(Class("torch._utils", "_rebuild_tensor_v2"),
                      Tuple({elements, Int(0), Tuple({Int(2)}), Tuple({Int(1)}),
                             build.boolean(false), build.none(), marks}));
  };
  const auto dict = [&](const char* key, bool value) {
    PickleNode* marks = Node(PickleDict{});
    EXPECT_TRUE(build.SetItem(marks, Str(key), build.boolean(value)).ok());
    return marks;
  };
  EXPECT_FALSE((*with(storage, build.none()))->As<PickleTensor>()->negated);
  EXPECT_FALSE((*with(storage, Node(PickleDict{})))->As<PickleTensor>()->negated);
  EXPECT_FALSE((*with(storage, dict("neg", false)))->As<PickleTensor>()->negated);
  EXPECT_FALSE((*with(storage, dict("conj", false)))->As<PickleTensor>()->negated);
  EXPECT_TRUE((*with(storage, dict("neg", true)))->As<PickleTensor>()->negated);
  const std::string expected =
      "expected no marks of torch._utils._rebuild_tensor_v2 but 'neg' of a float tensor, found ";
  const std::string hint = " (in PyTorch, save tensor.resolve_neg().resolve_conj().contiguous())";
  EXPECT_EQ(Refusal(with(storage, dict("conj", true))), expected + "'conj' of f32" + hint);
  EXPECT_EQ(Refusal(with(storage, dict("other", true))), expected + "'other' of f32" + hint);
  EXPECT_EQ(Refusal(with(storage, dict("other", false))), expected + "'other' of f32" + hint);
  EXPECT_EQ(Refusal(with(longs, dict("neg", true))), expected + "'neg' of i64" + hint);
  EXPECT_EQ(Refusal(with(storage, Int(1))), expected + "int" + hint);
}

TEST_F(PickleBuilderTest, MakesTensors) {
  PickleNode* storage = FloatStorage("7", 10);
  const Result<PickleNode*> tensor =
      Tensor(storage, 2, Tuple({Int(2), Int(3)}), Tuple({Int(3), Int(1)}));
  ASSERT_TRUE(tensor.ok()) << tensor.status().message();
  const auto* value = (*tensor)->As<PickleTensor>();
  ASSERT_NE(value, nullptr);
  EXPECT_EQ(value->type, ElementType::kF32);
  EXPECT_EQ(value->storage_key, "7");
  EXPECT_EQ(value->storage_elements, 10U);
  EXPECT_EQ(value->offset, 2U);
  EXPECT_EQ(value->shape, (std::vector<uint64_t>{2, 3}));
  EXPECT_EQ(value->strides, (std::vector<uint64_t>{3, 1}));

  // A parameter is read as its tensor; the older _rebuild_tensor has four arguments.
  const Result<PickleNode*> parameter =
      build.Call(Class("torch._utils", "_rebuild_parameter"),
                 Tuple({*tensor, build.boolean(true), build.none()}));
  EXPECT_EQ(*parameter, *tensor);
  EXPECT_TRUE(build
                  .Call(Class("torch._utils", "_rebuild_tensor"),
                        Tuple({storage, Int(0), Tuple({}), Tuple({})}))
                  .ok());

  const PickleGraph graph = build.Finish(*tensor, 0);
  EXPECT_EQ(graph.storages.at("7").class_name, "torch.FloatStorage");
  EXPECT_EQ(graph.storages.at("7").elements, 10U);
}

TEST_F(PickleBuilderTest, AddsTheSlicesFirstElement) {
  PickleNode* storage = FloatStorage("7", 10, Tuple({Str("8"), Int(4), Int(5)}));
  const Result<PickleNode*> tensor = Tensor(storage, 1, Tuple({Int(4)}), Tuple({Int(1)}));
  ASSERT_TRUE(tensor.ok()) << tensor.status().message();
  EXPECT_EQ((*tensor)->As<PickleTensor>()->offset, 5U);
  EXPECT_EQ((*tensor)->As<PickleTensor>()->storage_elements, 10U);
  EXPECT_EQ(Refusal(Tensor(storage, 1, Tuple({Int(5)}), Tuple({Int(1)}))),
            "expected a tensor inside storage '7' of 5 elements, found one that reaches 6");
}

TEST_F(PickleBuilderTest, RefusesTensorsThatLeaveTheirStorage) {
  PickleNode* storage = FloatStorage("7", 10);
  const int64_t most = INT64_MAX;
  EXPECT_EQ(Refusal(Tensor(storage, 0, Tuple({Int(11)}), Tuple({Int(1)}))),
            "expected a tensor inside storage '7' of 10 elements, found one that reaches 11");
  EXPECT_EQ(Refusal(Tensor(storage, 10, Tuple({}), Tuple({}))),
            "expected a tensor inside storage '7' of 10 elements, found one that reaches 11");
  EXPECT_EQ(Refusal(Tensor(storage, 0, Tuple({Int(most), Int(3)}), Tuple({Int(3), Int(1)}))),
            "expected a tensor inside storage '7' of 10 elements, found one beyond 2^64");
  EXPECT_EQ(Refusal(Tensor(storage, most, Tuple({Int(most), Int(2)}), Tuple({Int(1), Int(1)}))),
            "expected a tensor inside storage '7' of 10 elements, found one that reaches " +
                std::to_string(2 * static_cast<uint64_t>(most) + 1));
  EXPECT_EQ(Refusal(Tensor(storage, -1, Tuple({}), Tuple({}))),
            "expected a storage offset >= 0, found -1");
  EXPECT_EQ(Refusal(Tensor(storage, 0, Tuple({Int(-2)}), Tuple({Int(1)}))),
            "expected a tensor size >= 0, found -2");
  EXPECT_EQ(Refusal(Tensor(storage, 0, Tuple({Int(2)}), Tuple({Int(-1)}))),
            "expected a tensor stride >= 0, found -1");
  EXPECT_EQ(Refusal(Tensor(storage, 0, Tuple({Int(2)}), Tuple({}))),
            "expected as many strides as sizes (1), found 0");
  EXPECT_EQ(Refusal(Tensor(storage, 0, Tuple({Str("2")}), Tuple({Int(1)}))),
            "expected a tensor size as an int, found str");
  EXPECT_EQ(Refusal(Tensor(storage, 0, Int(2), Tuple({Int(1)}))),
            "expected a tensor size as a tuple, found int");
  EXPECT_EQ(Refusal(Tensor(Int(3), 0, Tuple({}), Tuple({}))),
            "expected a torch storage, found int");
  EXPECT_EQ(Refusal(Tensor(storage, 0, Node(PickleList{std::vector<PickleNode*>(17, build.none())}),
                           Tuple({}))),
            "expected a tensor size of at most 16 dimensions, found 17");
  EXPECT_EQ(Refusal(build.Call(Class("torch._utils", "_rebuild_tensor_v2"), Tuple({storage}))),
            "expected 4 or more arguments of torch._utils._rebuild_tensor_v2, found 1");
  // An empty tensor reads nothing, so its offset may be any.
  EXPECT_TRUE(Tensor(storage, most, Tuple({Int(0)}), Tuple({Int(most)})).ok());
}

TEST_F(PickleBuilderTest, RefusesWrongStorageIds) {
  PickleNode* type = Class("torch", "FloatStorage");
  const auto resolve = [&](std::initializer_list<PickleNode*> items) {
    return Refusal(build.Resolve(Tuple(items)));
  };
  EXPECT_EQ(resolve({Str("storage"), type, Str("1"), Str("cpu")}),
            "expected a storage id of 5 or 6 fields, found 4");
  EXPECT_EQ(resolve({Str("storage"), Int(1), Str("1"), Str("cpu"), Int(1)}),
            "expected a storage class, found int");
  EXPECT_EQ(resolve({Str("storage"), type, Int(1), Str("cpu"), Int(1)}),
            "expected a storage key as a str, found int");
  EXPECT_EQ(resolve({Str("storage"), type, Str("1"), Str("cpu"), Int(-1)}),
            "expected a storage size >= 0, found -1");
  EXPECT_EQ(resolve({Str("storage"), type, Str("1"), Str("cpu"), Int(9), Int(3)}),
            "expected a slice (key, first, elements) or None, found int");
  EXPECT_EQ(resolve({Str("storage"), type, Str("2"), Str("cpu"), Int(9),
                     Tuple({Str("3"), Int(5), Int(5)})}),
            "expected a slice inside storage '2' of 9 elements, found 5 from 5");
  FloatStorage("4", 9);
  EXPECT_EQ(resolve({Str("storage"), type, Str("4"), Str("cpu"), Int(8)}),
            "expected storage '4' to be 'torch.FloatStorage' of 9 elements as before, "
            "found 'torch.FloatStorage' of 8");
}

TEST_F(PickleBuilderTest, KeepsUnknownClassesAndIdsOpaque) {
  PickleNode* arguments = Tuple({Str("rm -rf /")});
  const Result<PickleNode*> call = build.Call(Class("os", "system"), arguments);
  ASSERT_TRUE(call.ok());
  const auto* object = (*call)->As<PickleObject>();
  ASSERT_NE(object, nullptr);
  EXPECT_EQ(object->class_name, "os.system");
  EXPECT_EQ(object->arguments, arguments);
  ASSERT_TRUE(build.Build(*call, build.none()).ok());
  EXPECT_EQ(object->state, build.none());
  ASSERT_TRUE(build.SetItem(*call, arguments, build.none()).ok());
  ASSERT_TRUE(build.Append(*call, arguments).ok());
  ASSERT_EQ(object->items.size(), 2U);
  EXPECT_EQ(object->items[0].first, arguments);
  EXPECT_EQ(object->items[1].first, nullptr);
  EXPECT_EQ(object->items[1].second, arguments);

  // Calling the result of a call is opaque too; calling a number is an error.
  EXPECT_EQ((*build.Call(*call, Tuple({})))->Describe(), "object of class 'os.system'");
  EXPECT_EQ(Refusal(build.Call(Int(1), Tuple({}))),
            "expected a class or function to call, found int");

  // A tensor of an unknown storage class.
  const Result<PickleNode*> storage = build.Resolve(
      Tuple({Str("storage"), Class("torch", "QInt8Storage"), Str("1"), Str("cpu"), Int(1)}));
  ASSERT_TRUE(storage.ok());
  EXPECT_EQ((*Tensor(*storage, 0, Tuple({}), Tuple({})))->Describe(),
            "a tensor of complex numbers or another type that is not read (in PyTorch, save "
            "tensor.float())");

  PickleNode* type = Class("model", "RNNModel");
  EXPECT_EQ(*build.Resolve(Tuple({Str("module"), type, Str("model.py"), Str("class RNNModel")})),
            type);
  EXPECT_EQ((*build.Resolve(Int(5)))->Describe(), "object of class 'persistent id'");
}

TEST_F(PickleBuilderTest, MakesContainers) {
  PickleNode* pair = Tuple({Str("a"), Int(1)});
  PickleNode* pairs = Tuple({pair, pair});
  for (const char* name : {"OrderedDict", "Counter"}) {
    const Result<PickleNode*> dict = build.Call(Class("collections", name), Tuple({pairs}));
    ASSERT_TRUE(dict.ok());
    EXPECT_EQ((*dict)->As<PickleDict>()->items.size(), 2U) << name;
    EXPECT_NE((*dict)->Find("a"), nullptr);
    const Result<PickleNode*> copy = build.Call(Class("builtins", "dict"), Tuple({*dict}));
    EXPECT_EQ((*copy)->As<PickleDict>()->items.size(), 2U);
  }
  const Result<PickleNode*> defaults =
      build.Call(Class("collections", "defaultdict"), Tuple({Class("builtins", "list"), pairs}));
  EXPECT_EQ((*defaults)->As<PickleDict>()->items.size(), 2U);
  EXPECT_EQ((*build.Call(Class("collections", "defaultdict"), Tuple({Class("builtins", "list")})))
                ->As<PickleDict>()
                ->items.size(),
            0U);
  for (const char* name : {"list", "tuple", "set", "frozenset"}) {
    EXPECT_EQ(
        (*build.Call(Class("__builtin__", name), Tuple({pairs})))->As<PickleList>()->items.size(),
        2U);
  }
  EXPECT_EQ((*build.Call(Class("torch", "Size"), Tuple({pair})))->As<PickleList>()->items.size(),
            2U);
  // Arguments that do not fit make the result opaque.
  EXPECT_NE((*build.Call(Class("builtins", "dict"), Tuple({Tuple({Int(1)})})))->As<PickleObject>(),
            nullptr);
  EXPECT_NE((*build.Call(Class("builtins", "list"), Tuple({Int(1)})))->As<PickleObject>(), nullptr);
  // Protocol 0 instances: copyreg._reconstructor(class, object, None).
  EXPECT_EQ((*build.Call(Class("copy_reg", "_reconstructor"),
                         Tuple({Class("a", "B"), Class("__builtin__", "object"), build.none()})))
                ->Describe(),
            "object of class 'a.B'");

  EXPECT_FALSE(build.SetItem(pairs, pair, pair).ok());
  EXPECT_FALSE(build.Append(Int(1), pair).ok());
}

TEST_F(PickleBuilderTest, StopsAtItsLimitOfMemory) {
  PickleNode* text = Node(std::string(1000, 'x'));
  PickleNode* list = Node(PickleList{std::vector<PickleNode*>(1000, text)});
  PickleNode* copy = Class("builtins", "list");
  Status status;
  int copies = 0;
  while (status.ok() && copies < 1000) {
    status = build.Call(copy, Tuple({list})).status();
    ++copies;
  }
  EXPECT_LT(copies, 100);
  EXPECT_NE(status.message().find("expected values of at most 1048576 bytes in memory"),
            std::string::npos)
      << status.message();
}

}  // namespace
}  // namespace kinglet::pickle_builder_test
