#include "converters/checkpoints/saved_network.h"

#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "tests/converters/module_nodes.h"

namespace kinglet::saved_network_test {
namespace {

using Keys = std::vector<std::string>;

// Nodes of a pickle, built from the inside out.
class Nodes : public ModuleNodes {
 public:
  PickleNode* Text(const std::string& text) { return Add(text); }
  PickleNode* Number() { return Add(int64_t{3}); }
  PickleNode* Dict(const std::vector<std::pair<std::string, PickleNode*>>& entries) {
    PickleDict dict;
    for (const auto& [key, value] : entries) dict.items.emplace_back(Text(key), value);
    return Add(std::move(dict));
  }
  PickleNode* List(std::vector<PickleNode*> items) { return Add(PickleList{std::move(items)}); }
  PickleNode* StateDict() { return Dict({{"encoder.weight", Tensor()}, {"bias", Tensor()}}); }
};

Result<SavedNetwork> Find(const PickleNode& root, const Keys& path = {}) {
  return FindNetwork(root, path, "m.pt");
}

std::string Refusal(const PickleNode& root, const Keys& path = {}) {
  const Result<SavedNetwork> network = Find(root, path);
  if (network.ok()) return "accepted";
  EXPECT_EQ(network.status().code(), KINGLET_INVALID_CHECKPOINT);
  return network.status().message();
}

// The names of the tensors after the keys that lead to them: "model/state_dict: a b".
std::string Found(const PickleNode& root, const Keys& path = {}) {
  const Result<SavedNetwork> network = Find(root, path);
  if (!network.ok()) return network.status().message();
  std::string text;
  for (const std::string& key : network->path) text += key + "/";
  for (const NamedTensor& named : network->tensors) text += " " + named.name;
  return text;
}

TEST(FindNetwork, InTheEntriesOfTrainingScripts) {
  for (const char* key : {"net", "model", "state_dict", "model_state", "model_state_dict",
                          "net_state_dict", "network", "module"}) {
    Nodes nodes;
    const PickleNode* root =
        nodes.Dict({{"epoch", nodes.Number()},
                    {"optimizer", nodes.Dict({{"state", nodes.Dict({{"0", nodes.Tensor()}})}})},
                    {key, nodes.StateDict()}});
    EXPECT_EQ(Found(*root), std::string(key) + "/ encoder.weight bias");
  }
}

TEST(FindNetwork, NestedListedAndAlone) {
  Nodes nodes;
  PickleNode* inner = nodes.Dict({{"config", nodes.Dict({})}, {"state_dict", nodes.StateDict()}});
  EXPECT_EQ(Found(*nodes.Dict({{"model", inner}})), "model/state_dict/ encoder.weight bias");
  EXPECT_EQ(Found(*nodes.List({nodes.StateDict(), nodes.Dict({})})), " encoder.weight bias");
  EXPECT_EQ(Found(*nodes.StateDict()), " encoder.weight bias");
  EXPECT_EQ(Found(*nodes.Dict({})), "");
  // A configuration under a network's key is not a network.
  EXPECT_EQ(Found(*nodes.Dict({{"model", nodes.Dict({{"type", nodes.Text("lstm")}})},
                               {"state_dict", nodes.StateDict()}})),
            "state_dict/ encoder.weight bias");
}

TEST(FindNetwork, ModulesKeepTheirAttributes) {
  ModuleNodes modules;
  PickleNode* network = modules.Module();
  modules.Set(network, "_parameters", "weight", modules.Tensor());
  PickleNode* criterion = modules.Module();
  modules.Set(criterion, "_parameters", "bias", modules.Tensor());
  Nodes nodes;
  const auto pair = Find(*nodes.List({network, criterion, nodes.Dict({})}));
  ASSERT_TRUE(pair.ok()) << pair.status().message();
  EXPECT_EQ(pair->modules.network, network);
  EXPECT_EQ(pair->modules.criterion, criterion);
  EXPECT_EQ(pair->tensors.at(1).name, "criterion.bias");
  const auto wrapped = Find(*nodes.Dict({{"model", network}, {"epoch", nodes.Number()}}));
  ASSERT_TRUE(wrapped.ok()) << wrapped.status().message();
  EXPECT_EQ(wrapped->modules.network, network);
  EXPECT_EQ(wrapped->path, Keys{"model"});
}

TEST(FindNetwork, ListsEntriesThatAreNoTensors) {
  Nodes nodes;
  const auto network = Find(*nodes.Dict({{"weight", nodes.Tensor()}, {"epoch", nodes.Number()}}));
  ASSERT_TRUE(network.ok()) << network.status().message();
  EXPECT_EQ(network->tensors.size(), 1u);
  EXPECT_EQ(network->others, Keys{"'epoch' (int)"});
}

TEST(FindNetwork, BelowTheKeysOfARecipe) {
  Nodes nodes;
  const PickleNode* root = nodes.Dict({{"ema", nodes.Dict({{"state_dict", nodes.StateDict()}})},
                                       {"a.b", nodes.Dict({{"c", nodes.StateDict()}})},
                                       {"model", nodes.Dict({{"other", nodes.Tensor()}})}});
  EXPECT_EQ(Found(*root), "model/ other");
  EXPECT_EQ(Found(*root, {"ema"}), "ema/state_dict/ encoder.weight bias");
  EXPECT_EQ(Found(*root, {"a.b", "c"}), "a.b/c/ encoder.weight bias");
  EXPECT_EQ(Refusal(*root, {"best"}),
            "checkpoint: m.pt: expected an entry 'best', as in the recipe's \"state_dict\", "
            "found entries 'ema', 'a.b', 'model' (name one of them)");
  EXPECT_EQ(Refusal(*nodes.Number(), {"best"}),
            "checkpoint: m.pt: expected an entry 'best', as in the recipe's \"state_dict\", "
            "found int");
}

TEST(FindNetwork, NamesTheNextStep) {
  Nodes nodes;
  EXPECT_EQ(
      Refusal(*nodes.Dict({{"net", nodes.StateDict()}, {"model", nodes.StateDict()}})),
      "checkpoint: m.pt: expected one network, or a recipe whose \"state_dict\" names its entry, "
      "found 'net' and 'model' (a --recipe {\"state_dict\": \"model\"} reads that one)");
  const auto found = [](const std::string& message) {
    return message.substr(std::min(message.size(), message.find(", found ") + 8));
  };
  EXPECT_EQ(found(Refusal(*nodes.Dict({{"ema", nodes.StateDict()}, {"epoch", nodes.Number()}}))),
            "dict with tensors in 'ema' (a recipe's \"state_dict\" names the entry that is the "
            "network)");
  EXPECT_EQ(
      found(Refusal(*nodes.Dict({{"state", nodes.Dict({})}, {"param_groups", nodes.List({})}}))),
      "the state of an optimiser alone (give the file of the network's state dict)");
  PickleObject script;
  script.class_name = "__torch__.model.RNN";
  EXPECT_EQ(found(Refusal(*nodes.Add(script))),
            "a TorchScript archive (save the model's state_dict() with torch.save)");
  EXPECT_EQ(found(Refusal(*nodes.Number())), "int");
  EXPECT_EQ(found(Refusal(*nodes.List({}))), "list");
}

// Dicts that contain each other without end.
TEST(FindNetwork, EndsInACircle) {
  Nodes nodes;
  PickleNode* dict = nodes.Dict({});
  for (const char* key : {"net", "model", "state_dict", "network"}) {
    std::get<PickleDict>(dict->value).items.emplace_back(nodes.Text(key), dict);
  }
  EXPECT_NE(Refusal(*dict).find("found dict with dict as 'net'"), std::string::npos);
}

}  // namespace
}  // namespace kinglet::saved_network_test
