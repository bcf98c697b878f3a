#include "converters/families/icefall_rnn.h"

#include <gtest/gtest.h>

#include <utility>

#include "converters/families/families.h"
#include "converters/families/name_match.h"
#include "tests/converters/module_nodes.h"
#include "tests/converters/recurrent_source.h"

namespace kinglet::icefall_rnn_test {
namespace {

RecurrentSource Network(uint64_t embedded = 6) {
  RecurrentSource checkpoint;
  checkpoint.Add("input_embedding.weight", {20, embedded});
  checkpoint.Add("rnn.weight_ih_l0", {16, embedded});
  checkpoint.Add("rnn.weight_hh_l0", {16, 4});
  checkpoint.Add("rnn.bias_ih_l0", {16});
  checkpoint.Add("rnn.bias_hh_l0", {16});
  checkpoint.Add("output_linear.weight", {20, 4});
  checkpoint.Add("output_linear.bias", {20});
  return checkpoint;
}

Result<LoadedModel> Load(const RecurrentSource& checkpoint, const PickleNode* root = nullptr) {
  const CheckpointTensors weights = checkpoint.Weights();
  return kIcefallRnn.load({"/nowhere/epoch-1.pt", "", std::nullopt, weights, {}, root});
}

TEST(IcefallRnn, ItsNamesAndNoOthers) {
  RecurrentSource checkpoint = Network();
  EXPECT_TRUE(Recognises(kIcefallRnn, checkpoint.Weights()));
  const auto loaded = Load(checkpoint);
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  EXPECT_EQ(loaded->draft.description.start_token, 1u);
  EXPECT_EQ(loaded->draft.description.end_token, 1u);
  EXPECT_TRUE(loaded->draft.vocabulary.empty());
  checkpoint.Add("extra", {2});
  EXPECT_NE(Load(checkpoint).status().message().find("unused 'extra'"), std::string::npos);
  checkpoint = Network();
  checkpoint.Remove("output_linear.bias");
  EXPECT_NE(Load(checkpoint).status().message().find("missing output_linear.bias"),
            std::string::npos);
  checkpoint.Remove("input_embedding.weight");
  EXPECT_FALSE(Recognises(kIcefallRnn, checkpoint.Weights()));
}

// A file may store a tied table once.
TEST(IcefallRnn, ATiedTableThatIsStoredOnce) {
  RecurrentSource checkpoint = Network(4);
  checkpoint.Remove("output_linear.weight");
  EXPECT_TRUE(Recognises(kIcefallRnn, checkpoint.Weights()));
  EXPECT_NE(Load(checkpoint).status().message().find("missing output_linear.weight"),
            std::string::npos);
  ModuleNodes nodes;
  PickleNode* root = nodes.Add(PickleDict{});
  nodes.Put(root, "tie_weights", nodes.Add(true));
  const auto model = Load(checkpoint, root);
  ASSERT_TRUE(model.ok()) << model.status().message();
  const ModelDescription& description = model->draft.description;
  EXPECT_EQ(FindBlock<AdaptiveEmbedding>(description)->bins.at(0).table,
            FindBlock<AdaptiveSoftmax>(description)->head_table);
}

TEST(IcefallRnn, TheFilesTokensWin) {
  ModuleNodes nodes;
  PickleNode* root = nodes.Add(PickleDict{});
  nodes.Put(root, "sos_id", nodes.Add(int64_t{3}));
  nodes.Put(root, "eos_id", nodes.Add(int64_t{19}));
  const auto loaded = Load(Network(), root);
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  EXPECT_EQ(loaded->draft.description.start_token, 3u);
  EXPECT_EQ(loaded->draft.description.end_token, 19u);
  for (const int64_t bad : {int64_t{-1}, int64_t{20}}) {
    PickleNode* other = nodes.Add(PickleDict{});
    nodes.Put(other, "sos_id", nodes.Add(bad));
    EXPECT_NE(Load(Network(), other).status().message().find("sos_id and eos_id"),
              std::string::npos);
  }
}

// What icefall saves with the state dict: options of training change nothing; options of the
// network must agree with the tensors.
TEST(IcefallRnn, OptionsOfTheFile) {
  const auto refusal = [](const std::string& name, decltype(PickleNode::value) value) {
    ModuleNodes nodes;
    PickleNode* root = nodes.Add(PickleDict{});
    nodes.Put(root, "model", nodes.Add(PickleDict{}));
    nodes.Put(root, name, nodes.Add(std::move(value)));
    return Load(Network(), root).status().message();
  };
  EXPECT_EQ(refusal("lr", 0.1), "");
  EXPECT_EQ(refusal("best_train_loss", PickleNone{}), "");
  EXPECT_EQ(refusal("tie_weights", false), "");
  for (const auto& [name, size] :
       {std::pair("vocab_size", 20), {"embedding_dim", 6}, {"hidden_dim", 4}, {"num_layers", 1}}) {
    EXPECT_EQ(refusal(name, int64_t{size}), "");
    EXPECT_NE(refusal(name, int64_t{size + 1})
                  .find(std::string(name) + ": expected " + std::to_string(size) +
                        ", as the checkpoint has, found " + std::to_string(size + 1)),
              std::string::npos);
    EXPECT_NE(refusal(name, std::string("many")).find(": expected an integer, found 'many'"),
              std::string::npos);
    EXPECT_NE(refusal(name, PickleNone{}).find(": expected a value, found None"),
              std::string::npos);
  }
  EXPECT_NE(refusal("sos_id", 1.5).find("sos_id: expected an integer, found 1.5"),
            std::string::npos);
  EXPECT_NE(refusal("tie_weights", true).find("tie_weights"), std::string::npos);
  EXPECT_NE(refusal("residual", true).find("residual: expected an option that kinglet knows"),
            std::string::npos);
}

}  // namespace
}  // namespace kinglet::icefall_rnn_test
