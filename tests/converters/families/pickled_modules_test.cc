#include "converters/families/pickled_modules.h"

#include <gtest/gtest.h>

#include "converters/families/families.h"
#include "tests/converters/module_nodes.h"

namespace kinglet::pickled_modules_test {
namespace {

constexpr FixedOption kFixed[] = {{"scale", "1"}};
constexpr PickledClass kClasses[] = {{"Model", {"`Model`", "width", kFixed, "dropout"}},
                                     {"Loss", {"`Loss`", "", {}, ""}}};
constexpr PickledPlace kPlaces[] = {{"", "Model"},
                                    {"layers", "ModuleList Sequential"},
                                    {"layers.*", "Linear ReLU"},
                                    {"table", "Embedding"}};
constexpr PickledPlace kCriterion[] = {{"", "Loss CrossEntropyLoss"}};
constexpr PickledNetwork kNetwork = {kPlaces, kCriterion, kClasses};

class PickledModulesTest : public testing::Test {
 protected:
  std::string Refusal() {
    const Status status =
        CheckPickledModules(&kNetwork, {model_, criterion_}, "a-family", "m.pt", &ignored_);
    EXPECT_EQ(status.code(), status.ok() ? KINGLET_OK : KINGLET_UNSUPPORTED);
    return status.message().substr(0, status.message().find(" ("));
  }
  PickleNode* Below(PickleNode* module, const std::string& name, const std::string& class_name) {
    PickleNode* below = nodes_.Module(class_name);
    nodes_.Set(module, "_modules", name, below);
    return below;
  }

  ModuleNodes nodes_;
  PickleNode* model_ = nodes_.Module("somewhere.model.Model");
  PickleNode* criterion_ = nullptr;
  IgnoredOptions ignored_;
};

TEST_F(PickledModulesTest, KnownClassesInTheirPlaces) {
  nodes_.Set(model_, "training", nodes_.Add(true));
  nodes_.Set(model_, "_forward_hooks", nodes_.Add(PickleDict{}));
  nodes_.Set(model_, "width", nodes_.Add(int64_t{8}));
  nodes_.Set(model_, "dropout", nodes_.Add(0.5));
  nodes_.Set(model_, "scale", nodes_.Add(1.0));
  PickleNode* layers = Below(model_, "layers", "torch.nn.modules.container.ModuleList");
  Below(layers, "0", "torch.nn.modules.linear.Linear");
  Below(layers, "17", "torch.nn.modules.activation.ReLU");
  Below(layers, "2", "torch.nn.modules.module.Module");
  criterion_ = nodes_.Module("torch.nn.modules.loss.CrossEntropyLoss");
  EXPECT_EQ(Refusal(), "");
  criterion_ = nodes_.Module("Loss");
  EXPECT_EQ(Refusal(), "");
}

TEST_F(PickledModulesTest, ClassesThatAreNotKnownThere) {
  PickleNode* layers = Below(model_, "layers", "torch.nn.modules.container.Sequential");
  PickleNode* layer = Below(layers, "3", "torch.nn.modules.activation.GELU");
  const auto refusal_of = [&](const std::string& name) {
    std::get<PickleObject>(layer->value).class_name = name;
    return Refusal();
  };
  EXPECT_EQ(refusal_of("torch.nn.modules.activation.GELU"),
            "m.pt: network, layers.3: expected a module of class Linear or ReLU, found "
            "'torch.nn.modules.activation.GELU'");
  EXPECT_NE(refusal_of("my.layers.Linear"), "");  // another package's
  EXPECT_NE(refusal_of("torch.nn.modules.rnn.LSTM"), "");
  EXPECT_NE(refusal_of("model.Model"), "");
  EXPECT_NE(refusal_of(""), "");
  EXPECT_EQ(refusal_of("torch.nn.modules.linear.Linear"), "");
}

TEST_F(PickledModulesTest, PlacesThatAreNotKnown) {
  Below(model_, "gate", "torch.nn.modules.linear.Linear");
  EXPECT_EQ(Refusal(),
            "m.pt: network, gate: expected no module, as this family's networks have none there, "
            "found 'torch.nn.modules.linear.Linear'");
}

TEST_F(PickledModulesTest, PlacesOfNumbers) {
  PickleNode* layers = Below(model_, "layers", "torch.nn.modules.container.ModuleList");
  Below(layers, "last", "torch.nn.modules.linear.Linear");
  EXPECT_NE(Refusal().find("network, layers.last: expected no module"), std::string::npos);
}

TEST_F(PickledModulesTest, Attributes) {
  PickleNode* scale = nodes_.Add(2.5);
  nodes_.Set(model_, "scale", scale);
  EXPECT_EQ(Refusal(), "m.pt: network, scale: expected 1, found 2.5");
  scale->value = int64_t{1};
  PickleNode* table = Below(model_, "table", "torch.nn.modules.sparse.Embedding");
  PickleNode* most = nodes_.Add(1.0);
  nodes_.Set(table, "max_norm", most);
  EXPECT_EQ(Refusal(), "m.pt: network, table, max_norm: expected None, found 1");
  most->value = PickleNone{};
  EXPECT_EQ(Refusal(), "");
  nodes_.Set(model_, "temperature", nodes_.Add(0.7));
  EXPECT_EQ(Refusal(),
            "m.pt: network, temperature: expected an option that kinglet knows, found "
            "'temperature' = 0.7");
  ignored_.names = {"temperature"};
  EXPECT_EQ(Refusal(), "");
}

TEST_F(PickledModulesTest, HooksRunWithTheModule) {
  PickleDict hooks;
  hooks.items.emplace_back(nodes_.Add(int64_t{3}), nodes_.Add(PickleGlobal{"m", "normalise"}));
  nodes_.Set(model_, "_forward_pre_hooks", nodes_.Add(hooks));
  EXPECT_EQ(
      Refusal(),
      "m.pt: network, _forward_pre_hooks: expected no functions, found functions that run with the "
      "module");
}

TEST_F(PickledModulesTest, OtherCriteria) {
  criterion_ = nodes_.Module("torch.nn.modules.adaptive.AdaptiveLogSoftmaxWithLoss");
  EXPECT_NE(Refusal().find("m.pt: criterion: expected a module of class Loss or CrossEntropyLoss"),
            std::string::npos);
}

TEST_F(PickledModulesTest, AFamilyThatReadsNoModules) {
  EXPECT_EQ(CheckPickledModules(nullptr, {model_, nullptr}, "bert", "m.pt", nullptr).message(),
            "checkpoint: m.pt: expected a state dict, as the family bert saves, found a pickled "
            "module (save its state_dict() with torch.save)");
  EXPECT_TRUE(CheckPickledModules(nullptr, {}, "bert", "m.pt", nullptr).ok());
}

// Each class of a family's places is known, and each of its tables is on the page.
TEST_F(PickledModulesTest, EveryClassOfEveryFamilyIsKnown) {
  size_t networks = 0;
  for (const Family* family : Families()) {
    if (family->modules == nullptr) continue;
    ++networks;
    const PickledNetwork& known = family->modules();
    size_t named = 0;
    for (const auto places : {known.places, known.criterion}) {
      for (const PickledPlace& place : places) {
        for (const std::string_view name : OptionNames(place.classes)) {
          const auto has = [name](std::span<const PickledClass> classes) {
            return std::any_of(classes.begin(), classes.end(),
                               [name](const PickledClass& each) { return each.name == name; });
          };
          EXPECT_TRUE(has(known.classes) || has(TorchClasses())) << family->name << ": " << name;
          ++named;
        }
      }
    }
    EXPECT_GT(named, 0u);
    EXPECT_GE(ClassOptions(known).size(), known.classes.size());
  }
  EXPECT_EQ(networks, 4u);
}

}  // namespace
}  // namespace kinglet::pickled_modules_test
