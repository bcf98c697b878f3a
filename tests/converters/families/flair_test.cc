#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "converters/families/families.h"
#include "tests/converters/module_nodes.h"
#include "tests/converters/recurrent_source.h"

namespace kinglet::flair_test {
namespace {

// A checkpoint of three characters and one layer of 6 units, with a projection to 4.
struct Flair {
  Flair() {
    tensors.Add("encoder.weight", {3, 5});
    tensors.Add("rnn.weight_ih_l0", {24, 5});
    tensors.Add("rnn.weight_hh_l0", {24, 6});
    tensors.Add("rnn.bias_ih_l0", {24});
    tensors.Add("rnn.bias_hh_l0", {24});
    tensors.Add("proj.weight", {4, 6});
    tensors.Add("proj.bias", {4});
    tensors.Add("decoder.weight", {3, 4});
    tensors.Add("decoder.bias", {3});
    Put("is_forward_lm", true);
    Put("hidden_size", int64_t{6});
    Put("nlayers", int64_t{1});
    Put("embedding_size", int64_t{5});
    Put("nout", int64_t{4});
    SetItems({"<unk>", "a", "\n"});
  }
  void Put(const std::string& name, decltype(PickleNode::value) value) {
    std::erase_if(std::get<PickleDict>(root->value).items, [&](const auto& entry) {
      return *entry.first->template As<std::string>() == name;
    });
    nodes.Put(root, name, nodes.Add(std::move(value)));
  }
  // `shift`: added to the ids of item2idx.
  void SetItems(const std::vector<std::string>& items, int64_t shift = 0) {
    PickleList by_id;
    PickleDict ids;
    for (const std::string& item : items) {
      by_id.items.push_back(nodes.Add(PickleBytes{item}));
      ids.items.emplace_back(by_id.items.back(),
                             nodes.Add(static_cast<int64_t>(ids.items.size()) + shift));
    }
    PickleObject dictionary;
    dictionary.class_name = "flair.data.Dictionary";
    dictionary.state = nodes.Add(PickleDict{});
    nodes.Put(dictionary.state, "idx2item", nodes.Add(by_id));
    nodes.Put(dictionary.state, "item2idx", nodes.Add(ids));
    Put("dictionary", dictionary);
  }
  Result<LoadedModel> Load() const {
    const CheckpointTensors weights = tensors.Weights();
    const FamilyInput input = {.checkpoint = "model.pt", .weights = weights, .root = root};
    KINGLET_ASSIGN_OR_RETURN(const Family* const family, ChooseFamily("", input));
    EXPECT_EQ(family->name, "flair");
    return LoadFamily(*family, input);
  }
  std::string Refusal() const { return Load().status().message(); }

  RecurrentSource tensors;
  ModuleNodes nodes;
  PickleNode* root = nodes.Add(PickleDict{});
};

TEST(Flair, ReadsCharactersInOneDirection) {
  Flair checkpoint;
  for (const bool forward : {true, false}) {
    checkpoint.Put("is_forward_lm", forward);
    const auto loaded = checkpoint.Load();
    ASSERT_TRUE(loaded.ok()) << loaded.status().message();
    EXPECT_EQ(loaded->draft.vocabulary, (std::vector<std::string>{"<unk>", "a", "\n"}));
    EXPECT_EQ(loaded->draft.tokenizer,
              (TextTables{false, WordRule{WordRule::Rule::kCharacters}, !forward}));
    EXPECT_FALSE(loaded->draft.description.start_token);
  }
}

// Its tensors have the names of another family's.
TEST(Flair, AnEntryTellsTheFamily) {
  Flair checkpoint;
  const CheckpointTensors weights = checkpoint.tensors.Weights();
  const FamilyInput plain = {.checkpoint = "model.pt", .weights = weights};
  EXPECT_EQ((*ChooseFamily("", plain))->name, "pytorch-examples");
  const std::string refusal = LoadFamily(*FamilyNamed("flair"), plain).status().message();
  EXPECT_NE(refusal.find("unused 'proj.weight'"), std::string::npos) << refusal;
}

TEST(Flair, EntriesAreChecked) {
  const auto refusal = [](const std::string& name, decltype(PickleNode::value) value) {
    Flair checkpoint;
    checkpoint.Put(name, std::move(value));
    return checkpoint.Refusal();
  };
  const std::string step = " (save the model again with flair's LanguageModel.save)";
  EXPECT_EQ(refusal("is_forward_lm", int64_t{1}),
            "model.pt: is_forward_lm: expected True or False, found 1" + step);
  EXPECT_EQ(refusal("nout", std::string("x")),
            "model.pt: nout: expected an integer, found 'x'" + step);
  EXPECT_EQ(refusal("hidden_size", int64_t{7}),
            "model.pt: hidden_size: expected 6, as the checkpoint has, found 7 (use this "
            "checkpoint's own file)");
  EXPECT_NE(refusal("nlayers", int64_t{2}), "");
  EXPECT_NE(refusal("embedding_size", int64_t{4}), "");
  EXPECT_NE(refusal("nout", int64_t{5}), "");
  EXPECT_NE(refusal("nout", PickleNone{}).find("unused 'proj.weight', 'proj.bias'"),
            std::string::npos);
  EXPECT_EQ(refusal("has_decoder", false), "model.pt: has_decoder: expected True, found False");
  EXPECT_NE(refusal("attention", true).find("an option that kinglet knows"), std::string::npos);
  EXPECT_NE(refusal("dictionary", PickleNone{}).find("vocabulary"), std::string::npos);
}

TEST(Flair, TheDictionaryFits) {
  const std::string step = " (save the model again with flair's LanguageModel.save)";
  Flair checkpoint;
  checkpoint.SetItems({"<unk>", "a", "\n"}, 1);
  EXPECT_EQ(
      checkpoint.Refusal(),
      "model.pt: dictionary: expected equal ids in item2idx and idx2item, found others" + step);
  checkpoint.SetItems({"<unk>", "a"});
  EXPECT_EQ(checkpoint.Refusal(),
            "model.pt: dictionary: expected 3 characters, as the tensors have, found 2" + step);
  checkpoint.SetItems({"a", "<unk>", "\n"});
  EXPECT_EQ(checkpoint.Refusal(),
            "model.pt: dictionary: expected <unk> as item 0, which stands for an unknown "
            "character, found item 1" +
                step);
  checkpoint.SetItems({"a", "b", "\n"});
  EXPECT_EQ(checkpoint.Refusal(), "");
}

}  // namespace
}  // namespace kinglet::flair_test
