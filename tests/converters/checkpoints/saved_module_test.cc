#include "converters/checkpoints/saved_module.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/converters/module_nodes.h"

namespace kinglet::saved_module_test {
namespace {

std::vector<std::string> Names(const StateDict& tensors) {
  std::vector<std::string> names;
  for (const NamedTensor& tensor : tensors) names.push_back(tensor.name);
  return names;
}

Status Refused(const PickleNode& module) {
  const Status status = ModuleTensors(module, "").status();
  EXPECT_EQ(status.code(), KINGLET_INVALID_CHECKPOINT);
  EXPECT_EQ(status.message().find('\n'), std::string::npos);
  return status;
}

TEST(SavedModule, NamesAreThoseOfTheStateDict) {
  ModuleNodes nodes;
  PickleNode* root = nodes.Module();
  PickleNode* child = nodes.Module();
  PickleNode* list = nodes.Module();
  nodes.Set(root, "_parameters", "own", nodes.Tensor());
  nodes.Set(root, "_buffers", "count", nodes.Tensor());
  nodes.Set(root, "_modules", "rnns", list);
  nodes.Set(root, "_modules", "absent", nodes.Add(PickleNone{}));
  nodes.Set(list, "_modules", "0", child);
  nodes.Set(child, "_parameters", "weight", nodes.Tensor());
  nodes.Set(child, "_parameters", "bias", nodes.Add(PickleNone{}));
  nodes.Set(child, "plain", nodes.Tensor());  // an attribute that happens to be a tensor
  const auto tensors = ModuleTensors(*root, "m.");
  ASSERT_TRUE(tensors.ok()) << tensors.status().message();
  EXPECT_EQ(Names(*tensors), (std::vector<std::string>{"m.own", "m.count", "m.rnns.0.weight"}));
  EXPECT_EQ(Submodule(*root, "rnns.0"), child);
  EXPECT_EQ(Submodule(*root, "rnns.1"), nullptr);
  EXPECT_EQ(Submodule(*root, "rnns.0.none.at.all"), nullptr);
  EXPECT_EQ(Submodule(*root, ""), root);
}

TEST(SavedModule, BuffersThatAreNotPersistentStayOut) {
  ModuleNodes nodes;
  PickleNode* root = nodes.Module();
  nodes.Set(root, "_buffers", "kept", nodes.Tensor());
  nodes.Set(root, "_buffers", "scratch", nodes.Tensor());
  PickleList excluded;
  excluded.items.push_back(nodes.Add(std::string("scratch")));
  nodes.Set(root, "_non_persistent_buffers_set", nodes.Add(std::move(excluded)));
  EXPECT_EQ(Names(ModuleTensors(*root, "").value()), std::vector<std::string>{"kept"});
}

TEST(SavedModule, Attributes) {
  ModuleNodes nodes;
  PickleNode* root = nodes.Module();
  nodes.Set(root, "rnn_type", nodes.Add(std::string("GRU")));
  nodes.Set(root, "nhid", nodes.Add(int64_t{200}));
  EXPECT_EQ(TextAttribute(*root, "rnn_type"), "GRU");
  EXPECT_EQ(TextAttribute(*root, "nhid"), std::nullopt);
  EXPECT_EQ(IntegerAttribute(*root, "nhid"), 200);
  EXPECT_EQ(IntegerAttribute(*root, "rnn_type"), std::nullopt);
  EXPECT_EQ(IntegerAttribute(*root, "none"), std::nullopt);
}

TEST(SavedModule, NumbersTruthValuesAndLists) {
  ModuleNodes nodes;
  PickleNode* root = nodes.Module();
  nodes.Set(root, "eps", nodes.Add(1e-5));
  nodes.Set(root, "one", nodes.Add(int64_t{1}));
  nodes.Set(root, "yes", nodes.Add(true));
  nodes.Set(root, "no", nodes.Add(int64_t{0}));
  nodes.Set(root, "text", nodes.Add(std::string("1")));
  PickleList list;
  list.items = {nodes.Add(int64_t{3}), nodes.Add(int64_t{5})};
  nodes.Set(root, "cutoffs", nodes.Add(list));
  list.items.push_back(nodes.Add(0.5));
  nodes.Set(root, "mixed", nodes.Add(list));
  EXPECT_EQ(NumberAttribute(*root, "eps"), 1e-5);
  EXPECT_EQ(NumberAttribute(*root, "one"), 1.0);
  EXPECT_EQ(NumberAttribute(*root, "text"), std::nullopt);
  EXPECT_EQ(BooleanAttribute(*root, "yes"), true);
  EXPECT_EQ(BooleanAttribute(*root, "one"), true);
  EXPECT_EQ(BooleanAttribute(*root, "no"), false);
  EXPECT_EQ(BooleanAttribute(*root, "text"), std::nullopt);
  EXPECT_EQ(BooleanAttribute(*root, "none"), std::nullopt);
  EXPECT_EQ(IntegersAttribute(*root, "cutoffs"), (std::vector<int64_t>{3, 5}));
  EXPECT_EQ(IntegersAttribute(*root, "mixed"), std::nullopt);
  EXPECT_EQ(IntegersAttribute(*root, "one"), std::nullopt);
}

TEST(SavedModule, WhatIsNoModule) {
  ModuleNodes nodes;
  EXPECT_TRUE(IsModule(*nodes.Module()));
  EXPECT_FALSE(IsModule(*nodes.Add(PickleNone{})));
  EXPECT_FALSE(IsModule(*nodes.Add(PickleDict{})));
  EXPECT_FALSE(IsModule(*nodes.Add(PickleObject{})));  // no state
  PickleObject object;
  object.state = nodes.Add(PickleList{});  // functools.partial's is a tuple
  EXPECT_FALSE(IsModule(*nodes.Add(std::move(object))));
}

TEST(SavedModule, EntriesOfTheWrongKind) {
  ModuleNodes nodes;
  PickleNode* root = nodes.Module();
  nodes.Set(root, "_parameters", "weight", nodes.Add(int64_t{3}));
  EXPECT_NE(Refused(*root).message().find("expected a tensor, found int"), std::string::npos);
  root = nodes.Module();
  nodes.Set(root, "_modules", "child", nodes.Tensor());
  EXPECT_NE(Refused(*root).message().find("expected a module, found tensor"), std::string::npos);
}

TEST(SavedModule, NestingWithoutEnd) {
  ModuleNodes nodes;
  PickleNode* root = nodes.Module();
  nodes.Set(root, "_modules", "again", root);
  EXPECT_NE(Refused(*root).message().find("at most 64 levels"), std::string::npos);
}

// Shared modules: 60 of them make 2^60 paths.
TEST(SavedModule, SharingWithoutEnd) {
  ModuleNodes nodes;
  PickleNode* inner = nodes.Module();
  for (int i = 0; i < 60; ++i) {
    PickleNode* outer = nodes.Module();
    nodes.Set(outer, "_modules", "a", inner);
    nodes.Set(outer, "_modules", "b", inner);
    inner = outer;
  }
  EXPECT_NE(Refused(*inner).message().find("at most a million names"), std::string::npos);
}

}  // namespace
}  // namespace kinglet::saved_module_test
