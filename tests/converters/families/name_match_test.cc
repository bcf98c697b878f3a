// Which framework a checkpoint's names fit, also for every checkpoint of the tests' data and,
// where KINGLET_CHECKPOINTS names them, for those of the original frameworks.
#include "converters/families/name_match.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "converters/checkpoints/checkpoint_file.h"

namespace kinglet::name_match_test {
namespace {

using Names = std::vector<std::string>;

CheckpointTensors Weights(const Names& names) {
  CheckpointTensors weights;
  for (const std::string& name : names) weights.push_back({name, {1}, nullptr});
  return weights;
}

FamilyInput Input(const CheckpointTensors& weights) {
  return {.checkpoint = "model.pt", .weights = weights};
}

TEST(NearestFamilies, NamesWhatIsMissing) {
  const Names lstm = {"encoder.weight", "rnn.weight_ih_l0", "rnn.weight_hh_l0", "rnn.bias_ih_l0",
                      "rnn.bias_hh_l0", "rnn.weight_ih_l1", "rnn.weight_hh_l1", "rnn.bias_ih_l1",
                      "decoder.weight", "decoder.bias",     "dropout"};
  const auto nearest = NearestFamilies(Input(Weights(lstm)));
  ASSERT_FALSE(nearest.empty());
  EXPECT_EQ(nearest.front().family->name, "pytorch-examples");
  EXPECT_NE(nearest.front().family, nullptr);
  EXPECT_EQ(nearest.front().missing, Names{"rnn.bias_hh_l1"});
  EXPECT_EQ(nearest.front().unused, Names{"dropout"});
  EXPECT_EQ(NearestText(Input(Weights(lstm))),
            "nearest is pytorch-examples, which misses 'rnn.bias_hh_l1' and does not read "
            "'dropout'");
  EXPECT_EQ(NearestText(Input(Weights({"x", "y"}))), "");
}

TEST(NearestFamilies, LeaveOutWhatNoNetworkHas) {
  Names names(100'001, "encoder.weight");
  EXPECT_TRUE(NearestFamilies(Input(Weights(names))).empty());
  EXPECT_FALSE(FittingPrefix(Input(Weights(names))));
  EXPECT_EQ(FamiliesByFit(Input(Weights(names))), FamilyNames());
}

TEST(FamiliesByFit, TheNearestFirst) {
  const std::string unnamed = FamiliesByFit(Input({}));
  EXPECT_TRUE(unnamed.starts_with("neurips-micronet, ")) << unnamed;
  const std::string lstm = FamiliesByFit(Input(Weights({"encoder.weight", "rnn.weight_hh_l0"})));
  EXPECT_TRUE(lstm.starts_with("pytorch-examples, ")) << lstm;
  EXPECT_EQ(lstm.size(), unnamed.size());
}

// A translation model of fairseq, which the family of its language models refuses.
TEST(WithNextStep, NamesTheFrameworkOrARecipe) {
  Names names = {"encoder.embed_tokens.weight", "decoder.embed_tokens.weight"};
  for (const char* end : {"weight", "bias"}) {
    names.push_back(std::string("decoder.layers.0.encoder_attn.out_proj.") + end);
  }
  for (const char* side : {"encoder.", "decoder."}) {
    const std::string layer = std::string(side) + "layers.0.";
    for (const char* part : {"q_proj", "k_proj", "v_proj", "out_proj"}) {
      names.push_back(layer + "self_attn." + part + ".weight");
      names.push_back(layer + "self_attn." + part + ".bias");
    }
    for (const char* part : {"fc1", "fc2", "final_layer_norm", "self_attn_layer_norm"}) {
      names.push_back(layer + part + ".weight");
      names.push_back(layer + part + ".bias");
    }
  }
  const Status refusal(KINGLET_INVALID_CHECKPOINT, "no");
  EXPECT_EQ(WithNextStep(refusal, Weights(names)).message(),
            "no; it has an encoder and a decoder: no family reads fairseq's translation models");
  EXPECT_EQ(WithNextStep(refusal, Weights({"encoder.weight"})).message(),
            "no (`kinglet inspect` shows all names; a --recipe may describe the network: "
            "docs/RECIPES.md)");
  const Status unread(KINGLET_NOT_FOUND, "no config.yaml: --config names one");
  EXPECT_EQ(WithNextStep(unread, Weights(names)).message(), unread.message());
}

TEST(Recognises, EveryMarkAndNoneOfTheExcluded) {
  static constexpr Family kFamily = {.name = "f", .marks = "a.*|b.* c !d.*"};
  EXPECT_TRUE(Recognises(kFamily, Weights({"b.1", "c"})));
  EXPECT_FALSE(Recognises(kFamily, Weights({"c"})));
  EXPECT_FALSE(Recognises(kFamily, Weights({"a.1"})));
  EXPECT_FALSE(Recognises(kFamily, Weights({"a.1", "c", "d.1"})));
}

// The names of this family's tensors depend on a configuration, which is not there.
TEST(NearestFamilies, AFamilyThatNeedsAConfigurationRefuses) {
  const auto nearest = NearestFamilies(Input(Weights({"layers.0.dec_attn.qkv_net.weight"})));
  ASSERT_EQ(nearest.size(), 1u);
  EXPECT_EQ(nearest[0].family->name, "transformer-xl");
  EXPECT_NE(nearest[0].refusal.find("expected"), std::string::npos) << nearest[0].refusal;
  EXPECT_TRUE(nearest[0].fits());
}

TEST(FittingPrefix, OfAFrameworksModule) {
  const Names inner = {"encoder.weight", "rnn.weight_ih_l0", "rnn.weight_hh_l0", "rnn.bias_ih_l0",
                       "rnn.bias_hh_l0", "decoder.weight",   "decoder.bias"};
  EXPECT_FALSE(FittingPrefix(Input(Weights(inner))));
  Names names = {"loss.weight"};
  for (const std::string& name : inner) names.push_back("net." + name);
  const auto found = FittingPrefix(Input(Weights(names)));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->prefix, "net.");
  EXPECT_EQ(found->family->name, "pytorch-examples");
  EXPECT_EQ(NearestText(Input(Weights(names))),
            "pytorch-examples fits the names without 'net.': a recipe {\"prefix\": \"net.\"}");
  for (std::string& name : names) name = "model." + name;
  EXPECT_EQ(FittingPrefix(Input(Weights(names)))->prefix, "model.net.");
}

TEST(NearestFamilies, TellsTranslationModels) {
  Names names = {"encoder.embed_tokens.weight", "decoder.embed_tokens.weight"};
  for (const char* layer : {"encoder.layers.0.", "decoder.layers.0."}) {
    for (const char* part : {"self_attn.out_proj", "fc1", "fc2", "self_attn.q_proj"}) {
      names.push_back(std::string(layer) + part + ".weight");
      names.push_back(std::string(layer) + part + ".bias");
    }
  }
  names.insert(names.end(), {"decoder.layers.0.encoder_attn.out_proj.weight",
                             "decoder.layers.0.encoder_attn.out_proj.bias", "encoder.version"});
  EXPECT_EQ(NearestText(Input(Weights(names))),
            "it has an encoder and a decoder: no family reads fairseq's translation models");
}

// The checkpoints of a folder, each with its family.
struct Known {
  std::string path, code;
};

// Of the folders in tests/data/FOLDER whose names begin with `begin`.
void AddCheckpoints(const std::string& folder, const std::string& begin, const std::string& code,
                    std::vector<Known>& known) {
  const std::string root = KINGLET_TEST_DATA "/" + folder;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    const std::string path = entry.path().string();
    // One of several files of a checkpoint has a part of its names.
    if (!path.substr(root.size()).starts_with("/" + begin) || path.find("-of-") != path.npos) {
      continue;
    }
    for (const char* extension : {".pt", ".pth", ".bin", ".safetensors", ".npz", ".index.json"}) {
      if (path.ends_with(extension)) known.push_back({path, code});
    }
  }
}

std::vector<Known> KnownCheckpoints() {
  std::vector<Known> known;
  for (const char* folder :
       {"micronet-variants", "micronet-small-9bit-pruned", "micronet-small-fp32"}) {
    AddCheckpoints(folder, "", "neurips-micronet", known);
  }
  for (const char* task : {"mlm-", "pretraining", "classifier-", "question-answering"}) {
    AddCheckpoints("bert", task, "bert", known);
  }
  AddCheckpoints("fairseq-variants", "", "fairseq", known);
  AddCheckpoints("opennmt", "", "opennmt", known);
  AddCheckpoints("opennmt-recurrent", "", "opennmt", known);
  AddCheckpoints("recurrent-variants", "awd-", "awd-lstm", known);
  AddCheckpoints("recurrent-variants", "define-awd-", "define-awd-lstm", known);
  AddCheckpoints("recurrent-variants", "examples-", "pytorch-examples", known);
  AddCheckpoints("recurrent-variants", "zaremba-", "zaremba-tf", known);
  AddCheckpoints("transformer-xl-variants", "hf-", "transfo-xl-hf", known);
  AddCheckpoints("transformer-xl-variants", "kimi-", "transformer-xl", known);
  return known;
}

TEST(NearestFamilies, FitTheTestsCheckpoints) {
  const std::vector<Known> known = KnownCheckpoints();
  EXPECT_GT(known.size(), 40u);
  for (const Known& one : known) {
    SCOPED_TRACE(one.path);
    const auto opened = OpenCheckpointFile(one.path);
    if (!opened.ok()) continue;  // a part of a checkpoint
    const auto nearest = NearestFamilies(InputOf(*opened, opened->tensors));
    ASSERT_FALSE(nearest.empty());
    EXPECT_EQ(nearest.front().family->name, one.code);
    EXPECT_EQ(nearest.front().fit, 1);
    EXPECT_EQ(nearest.front().missing, Names());
    EXPECT_EQ(nearest.front().unused, Names());
  }
}

// If a family converts a checkpoint, all names are expected; otherwise the nearest framework is
// named.
TEST(NearestFamilies, FitTheOriginalsCheckpoints) {
  const char* root = std::getenv("KINGLET_CHECKPOINTS");
  if (root == nullptr) GTEST_SKIP() << "KINGLET_CHECKPOINTS is not set";
  struct Original {
    const char* file;
    const char* code;  // empty: no framework
    bool whole = true;
  };
  for (const Original& original : {
           Original{"micronet-wikitext2/models/model-3000.pth", "neurips-micronet"},
           Original{"micronet-wikitext2-9bit/models/model-1.pth", "neurips-micronet"},
           Original{"micronet-small-fp32/models/model-400.pth", "neurips-micronet"},
           Original{"micronet-small-9bit-pruned/models/model-1.pth", "neurips-micronet"},
           Original{"transformer-xl/model.pt", "transformer-xl"},
           Original{"fairseq-adaptive/model.pt", "fairseq"},
           Original{"fairseq-char/model.pt", "fairseq"},
           Original{"awd-lstm/model.pt", "awd-lstm"},
           Original{"pytorch-examples/model.pt", "pytorch-examples"},
           Original{"dpq-lm-sx/model.npz", "zaremba-tf"},
           Original{"opennmt-transformer/model_step_900.pt", "opennmt"},
           Original{"opennmt-rnn/model_step_2800.pt", "opennmt"},
           Original{"bert-mlm/model.safetensors", "bert"},
           Original{"bert-mlm/pytorch_model.bin", "bert"},
           Original{"bert-classifier/model.safetensors", "bert"},
           Original{"icefall-rnn-lm/epoch-7.pt", "icefall-rnn-lm"},
           Original{"icefall-transformer-lm/pretrained.pt", "icefall-transformer-lm"},
           Original{"espnet-rnn-lm/valid.loss.ave_3best.pth", "espnet-rnn-lm"},
           Original{"espnet-transformer-lm/valid.loss.ave_3best.pth", "espnet-transformer-lm"},
           Original{"speechbrain-rnn-lm/model.ckpt", "speechbrain-rnn-lm"},
           Original{"speechbrain-transformer-lm/lm.ckpt", "speechbrain-transformer-lm"},
           Original{"reference-txl-define/model.pt", "transformer-xl", false},
           Original{"reference-txl-dpq/model.pt", "transformer-xl", false},
           Original{"reference-opennmt-dpq/model.pt", "opennmt", false},
           Original{"reference-opennmt-rnn-dpq/model.pt", "opennmt", false},
           Original{"reference-bert-dpq/model.pt", "bert", false},
           Original{"reference-define/model.pt", ""},
           Original{"reference-dpq/model.pt", ""},
           Original{"reference-slim/model.pt", ""},
       }) {
    SCOPED_TRACE(original.file);
    const auto opened = OpenCheckpointFile(std::string(root) + "/" + original.file);
    if (!opened.ok() && opened.status().code() == KINGLET_NOT_FOUND) continue;
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    const auto nearest = NearestFamilies(InputOf(*opened, opened->tensors));
    ASSERT_EQ(nearest.empty(), std::string_view(original.code).empty());
    if (nearest.empty()) continue;
    EXPECT_EQ(nearest.front().family->name, original.code);
    EXPECT_EQ(nearest.front().fit == 1, original.whole);
  }
}

}  // namespace
}  // namespace kinglet::name_match_test
