// What icefall saves with a state dict: options of training change nothing; options of the network
// must agree with the tensors.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "converters/checkpoints/checkpoint_file.h"
#include "converters/families/families.h"
#include "tests/converters/module_nodes.h"

namespace kinglet::icefall_options_test {
namespace {

using Value = decltype(PickleNode::value);

// The tensors of a fixture, with other options saved next to them.
class IcefallOptions {
 public:
  explicit IcefallOptions(const std::string& folder)
      : tensors_(OpenCheckpointFile(KINGLET_TEST_DATA "/speech-lm-variants/" + folder)->tensors),
        family_(**ChooseFamily("", {"", "", std::nullopt, tensors_})) {}

  Result<LoadedModel> Load(const std::vector<std::pair<std::string, Value>>& options) const {
    ModuleNodes nodes;
    PickleNode* root = nodes.Add(PickleDict{});
    nodes.Put(root, "model", nodes.Add(PickleDict{}));
    for (const auto& [name, value] : options) nodes.Put(root, name, nodes.Add(value));
    return family_.load({"/nowhere/epoch-1.pt", "", std::nullopt, tensors_, {}, root});
  }
  void Remove(const std::string& name) {
    std::erase_if(tensors_, [&](const CheckpointTensor& tensor) { return tensor.name == name; });
  }
  std::string Refusal(const std::string& name, const Value& value) const {
    return Load({{name, value}}).status().message();
  }
  void ExpectRefused(const std::string& name, const Value& value, const std::string& part) const {
    EXPECT_NE(Refusal(name, value).find(part), std::string::npos) << Refusal(name, value);
  }

 private:
  CheckpointTensors tensors_;
  const Family& family_;
};

TEST(IcefallOptions, OfTheNetwork) {
  const struct {
    const char* folder;
    std::vector<std::pair<std::string, int64_t>> sizes;
  } networks[] = {
      {"icefall-rnn-tied/epoch-7.pt",
       {{"vocab_size", 13}, {"embedding_dim", 8}, {"hidden_dim", 8}, {"num_layers", 2}}},
      {"icefall-transformer/pretrained.pt",
       {{"vocab_size", 13},
        {"embedding_dim", 6},
        {"encoder_dim", 8},
        {"dim_feedforward", 10},
        {"nhead", 2},
        {"num_layers", 2}}},
  };
  for (const auto& [folder, sizes] : networks) {
    const IcefallOptions options(folder);
    EXPECT_EQ(options.Refusal("lr", 0.1), "");
    EXPECT_EQ(options.Refusal("best_train_loss", PickleNone{}), "");
    for (const auto& [name, size] : sizes) {
      EXPECT_EQ(options.Refusal(name, size), "");
      options.ExpectRefused(name, size + 1,
                            name + ": expected " + std::to_string(size) + ", as the ");
      options.ExpectRefused(name, std::string("many"), ": expected an integer, found 'many'");
      options.ExpectRefused(name, PickleNone{}, ": expected a value, found None");
    }
    for (const char* unknown : {"residual", "activation"}) {
      options.ExpectRefused(unknown, true,
                            unknown + std::string(": expected an option that kinglet knows"));
    }
  }
  const IcefallOptions untied("icefall-rnn-untied-sos-2/checkpoint-90.pt");
  EXPECT_EQ(untied.Refusal("tie_weights", false), "");
  untied.ExpectRefused("tie_weights", true, "tie_weights");
  untied.ExpectRefused("sos_id", 1.5, "sos_id: expected an integer, found 1.5");
}

TEST(IcefallOptions, TheFilesTokensWin) {
  const IcefallOptions options("icefall-rnn-tied/epoch-7.pt");
  const auto expect_tokens = [](const Result<LoadedModel>& loaded, uint32_t start, uint32_t end) {
    ASSERT_TRUE(loaded.ok()) << loaded.status().message();
    EXPECT_EQ(loaded->draft.description.start_token, start);
    EXPECT_EQ(loaded->draft.description.end_token, end);
    EXPECT_TRUE(loaded->draft.vocabulary.empty());
  };
  expect_tokens(options.Load({}), 1, 1);
  expect_tokens(options.Load({{"sos_id", int64_t{3}}, {"eos_id", int64_t{12}}}), 3, 12);
  for (const int64_t bad : {-1, 13}) options.ExpectRefused("sos_id", bad, "sos_id and eos_id");
}

// A file may store a tied table once.
TEST(IcefallOptions, ATiedTableThatIsStoredOnce) {
  IcefallOptions options("icefall-rnn-tied/epoch-7.pt");
  options.Remove("output_linear.weight");
  EXPECT_NE(options.Load({}).status().message().find("missing output_linear.weight"),
            std::string::npos);
  const auto model = options.Load({{"tie_weights", true}});
  ASSERT_TRUE(model.ok()) << model.status().message();
  const ModelDescription& description = model->draft.description;
  EXPECT_EQ(FindBlock<AdaptiveEmbedding>(description)->bins.at(0).table,
            FindBlock<AdaptiveSoftmax>(description)->head_table);
}

}  // namespace
}  // namespace kinglet::icefall_options_test
