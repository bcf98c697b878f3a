// Conversion of OpenNMT-py's Transformers against answers that PyTorch computed in float64
// (tests/data/opennmt; make_fixtures.py there made them). If the environment variable
// KINGLET_CHECKPOINTS names a folder, its folder opennmt-transformer, which the original framework
// wrote, is converted too.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "converters/checkpoints/checkpoint_file.h"
#include "converters/convert.h"
#include "converters/families/families.h"
#include "converters/families/name_match.h"
#include "converters/texts/pair_file.h"
#include "converters/texts/token_file.h"
#include "runtime/accounting/trace.h"
#include "runtime/translation.h"
#include "tests/converters/synthetic.h"

namespace kinglet::opennmt_test {
namespace {

namespace fs = std::filesystem;
constexpr uint32_t kStart = 2, kEnd = 3;

struct Golden {
  std::string folder, checkpoint, pairs;
  double tolerance;
};

std::vector<Golden> Goldens() {
  const std::string data = KINGLET_TEST_DATA "/opennmt/";
  std::vector<Golden> goldens;
  for (const char* name : {"plain", "shared-old-names", "define", "gelu"}) {
    goldens.push_back(
        {data + name, data + name + "/model_step_7.pt", data + name + "/pairs.txt", 1e-9});
  }
  if (const char* more = std::getenv("KINGLET_CHECKPOINTS"); more != nullptr && *more != '\0') {
    const std::string folder = std::string(more) + "/opennmt-transformer";
    // The original rounds attention scores to float32.
    if (fs::exists(folder)) {
      goldens.push_back({folder, folder + "/model_step_900.pt", folder + "/tokens.txt", 2e-5});
    }
  }
  return goldens;
}

ConvertOptions OptionsFor(const Golden& golden, const std::string& output) {
  ConvertOptions options;
  options.checkpoint = golden.checkpoint;
  options.output = output;
  options.golden = golden.folder + "/golden.tsv";
  options.ids = golden.pairs;
  options.tolerance = golden.tolerance;
  return options;
}

std::shared_ptr<const Model> OpenOn(const std::string& path, const std::string& backend) {
  ModelOptions options;
  options.backend = backend;
  auto model = Model::Open(path, options);
  EXPECT_TRUE(model.ok()) << model.status().message();
  return *model;
}

std::vector<std::vector<std::string>> Fields(const std::string& path) {
  std::vector<std::vector<std::string>> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    lines.emplace_back();
    for (std::string word; words >> word;) lines.back().push_back(word);
  }
  EXPECT_FALSE(lines.empty()) << path;
  return lines;
}

TEST(OpenNmt, TheAnswersOfTheOriginal) {
  for (const Golden& golden : Goldens()) {
    const TemporaryFolder folder;
    const std::string path = folder.Path("m.kgl");
    const auto summary = Convert(OptionsFor(golden, path));
    ASSERT_TRUE(summary.ok()) << golden.folder << ": " << summary.status().message();
    EXPECT_EQ(summary->family, kOpenNmt.name);
    const auto answers = Fields(golden.folder + "/golden.tsv");
    EXPECT_EQ(summary->golden_positions, answers.size());
    EXPECT_LE(summary->golden_largest_difference, golden.tolerance);

    // The model file stores the first sentence's answers, for `kinglet verify`.
    const auto file = ModelFile::Open(path);
    ASSERT_TRUE((*file)->description().golden.has_value());
    EXPECT_FALSE((*file)->description().golden->source_ids.empty());

    // On the fast backend: every position, and the most probable words in their order.
    const auto session = *Session::Create(OpenOn(path, "cpu"));
    const auto pairs = *ReadPairs(golden.pairs, kStart);
    const auto top = Fields(golden.folder + "/golden_topk.tsv");
    size_t answer = 0, line = 0;
    for (size_t sentence = 0; sentence < pairs.size(); ++sentence) {
      ASSERT_TRUE(session->Encode(pairs[sentence].source).ok());
      uint32_t fed = kStart;
      for (const uint32_t id : pairs[sentence].target) {
        ASSERT_TRUE(session->StepToken(fed).ok());
        EXPECT_NEAR(*session->LogProbability(id), std::stod(answers[answer].back()), 1e-4);
        ++answer;
        const std::vector<Candidate> candidates = *session->TopK(20);
        const std::string place = answers[answer - 1][1];
        for (size_t rank = 0;
             line < top.size() && top[line][0] == std::to_string(sentence) && top[line][1] == place;
             ++rank, ++line) {
          EXPECT_EQ(candidates.at(rank).id, std::stoul(top[line][3])) << sentence;
          EXPECT_NEAR(candidates.at(rank).log_probability, std::stod(top[line][4]), 1e-4);
        }
        fed = id;
      }
    }
    EXPECT_EQ(answer, answers.size());
    EXPECT_EQ(line, top.size());
  }
}

TEST(OpenNmt, TranslationsEqualAnotherProgramsSearch) {
  for (const char* name : {"plain", "shared-old-names", "define", "gelu"}) {
    const std::string data = std::string(KINGLET_TEST_DATA "/opennmt/") + name + "/";
    const TemporaryFolder folder;
    ConvertOptions options;
    options.checkpoint = data + "model_step_7.pt";
    options.output = folder.Path("m.kgl");
    ASSERT_TRUE(Convert(options).ok());
    const auto pairs = *ReadPairs(data + "pairs.txt", kStart);
    const struct {
      const char* file;
      uint32_t beam;
    } searches[] = {{"greedy.txt", 1}, {"beam3.txt", 3}};
    for (const auto& search : searches) {
      const auto expected = *ReadIdLines(data + search.file);
      ASSERT_EQ(expected.size(), pairs.size());
      for (const char* backend : {"ref64", "cpu"}) {
        const auto session =
            *Session::Create(OpenOn(options.output, backend), {.lanes = search.beam});
        for (size_t i = 0; i < pairs.size(); ++i) {
          const auto found = Translate(pairs[i].source, {kEnd, 9, 0}, *session);
          ASSERT_TRUE(found.ok()) << found.status().message();
          EXPECT_EQ(found->front().ids, expected[i]) << name << " " << search.file << " " << i;
        }
      }
    }
  }
}

// Units of either language. They stay in the model, so their vectors are not rounded to a table.
TEST(OpenNmt, UnitsThatAreKept) {
  const Golden golden = Goldens()[2];
  const TemporaryFolder folder;
  ConvertOptions options = OptionsFor(golden, folder.Path("kept.kgl"));
  options.golden = golden.folder + "/golden_kept.tsv";
  options.define_cache_rows = 4;
  const auto summary = Convert(options);
  ASSERT_TRUE(summary.ok()) << summary.status().message();
  EXPECT_LE(summary->golden_largest_difference, golden.tolerance);
  const auto file = ModelFile::Open(options.output);
  const ModelDescription& description = (*file)->description();
  const auto* encoder = FindBlock<TransformerEncoder>(description);
  for (const AdaptiveEmbedding* embedding :
       {&encoder->embedding, FindBlock<AdaptiveEmbedding>(description)}) {
    ASSERT_TRUE(embedding->define);
    EXPECT_EQ(embedding->define->cache_rows, 4u);
    EXPECT_EQ(embedding->bins.size(), 2u);
  }
  const auto expected = *ReadIdLines(golden.folder + "/beam3.txt");
  const auto pairs = *ReadPairs(golden.pairs, kStart);
  const auto session = *Session::Create(OpenOn(options.output, "cpu"), {.lanes = 3});
  for (size_t i = 0; i < pairs.size(); ++i) {
    EXPECT_EQ(Translate(pairs[i].source, {kEnd, 9, 0}, *session)->front().ids, expected[i]);
  }

  uint64_t cached = 0;  // of a source: a word's row is made once
  for (const auto& [taken, count] :
       EncoderTrace(session->model().plan(), std::vector<uint32_t>{5, 5, 6}).paths) {
    if (taken.row_is_cached) cached += count;
  }
  EXPECT_EQ(cached, 1u);

  options = OptionsFor(Goldens()[0], folder.Path("none.kgl"));
  options.define_cache_rows = 4;
  EXPECT_NE(Convert(options).status().message().find("keep-define"), std::string::npos);
}

// A recipe declares a unit with other names; its outputs for all words are the family's table.
TEST(OpenNmt, ARecipeDeclaresUnitsThatTheFamilyDoesNotKnow) {
  const Golden golden = Goldens()[2];
  const TemporaryFolder folder;
  const auto unit = [](const std::string& side) {
    const std::string name = side + ".embeddings.make_embedding.emb_luts.0.";
    const auto layer = [&](const std::string& tensor, int groups, const std::string& more) {
      return R"({"layout": "out_in", "weight": ")" + name + tensor + R"(.weight", "bias": ")" +
             name + tensor + R"(.bias", "groups": )" + std::to_string(groups) + more + "}";
    };
    const auto band = [&](const std::string& index) {
      return R"({"table": ")" + name + "embeddings.embeds." + index +
             R"(.weight", "scale": 1, "projection": {"transpose": false, "tensor": ")" + name +
             "embeddings.projcs." + index + R"(.weight"}})";
    };
    return "\"" + name + R"(weight": {"define": {"map": [)" + band("0") + ", " + band("1") +
           R"(], "entry_layers": 0, "every_layer": {"shuffle": "none", "activation": "none",
                 "residual": "none"}, "layers": [)" +
           layer("define.weights.0", 4, R"(, "weights": "shared")") + ", " +
           layer("define.weights.1", 2,
                 R"(, "weights": "shared", "skip": "mix", "order": "previous_first")") +
           ", " + layer("define.finalProj", 1, "") + "]}}";
  };
  ConvertOptions options = OptionsFor(golden, folder.Path("m.kgl"));
  options.recipe = folder.Write("r.json", R"({"family": "opennmt", "tables": {)" + unit("encoder") +
                                              ", " + unit("decoder") + "}}");
  const auto summary = Convert(options);
  ASSERT_TRUE(summary.ok()) << summary.status().message();
  EXPECT_LE(summary->golden_largest_difference, golden.tolerance);

  options.recipe =
      folder.Write("r.json", R"({"family": "opennmt", "tables": {)" + unit("encoder") + "}}");
  ASSERT_TRUE(Convert(options).ok());  // the decoder's is one that the family knows
}

TEST(OpenNmt, UnitsAreCheckedAgainstTheVocabulary) {
  const auto opened = OpenCheckpointFile(KINGLET_TEST_DATA "/opennmt/define/model_step_7.pt");
  ASSERT_TRUE(opened.ok());
  const std::string unit = "encoder.embeddings.make_embedding.emb_luts.0.";
  const struct {
    const char* tensor;
    Shape shape;  // empty: missing
    const char* message;
  } edits[] = {
      {"embeddings.embeds.1.weight", {11, 2}, "bands of 19 words in all"},
      {"embeddings.projcs.0.weight",
       {},
       "missing encoder.embeddings.make_embedding.emb_luts.0."
       "embeddings.projcs.0.weight"},
      {"define.finalProj.weight",
       {},
       "missing encoder.embeddings.make_embedding.emb_luts.0."
       "define.finalProj.weight"},
      {"define.finalProj.weight", {12, 16}, "expected"},
      {"define.weights.1.weight", {8, 7}, "expected [out / groups, 20 / groups]"},
  };
  for (const auto& edit : edits) {
    CheckpointTensors weights = opened->tensors;
    for (CheckpointTensor& tensor : weights) {
      if (tensor.name != unit + edit.tensor) continue;
      if (edit.shape.empty()) {
        tensor.name = "elsewhere";
      } else {
        tensor.shape = edit.shape;
      }
    }
    const FamilyInput input{"model.pt", "", std::nullopt, weights, {}, &opened->checkpoint->root()};
    const Status status = kOpenNmt.load(input).status();
    EXPECT_EQ(status.code(), KINGLET_INVALID_CHECKPOINT) << edit.tensor;
    EXPECT_NE(status.message().find(edit.message), std::string::npos) << status.message();
  }
}

TEST(OpenNmt, SharedTablesAreStoredOnce) {
  const std::string words = "embeddings.make_embedding.emb_luts.0.weight";
  const std::string positions = "embeddings.make_embedding.pe.pe";
  const struct {
    const char* folder;
    bool shared;
  } models[] = {{"plain", false}, {"shared-old-names", true}};
  for (const auto& model : models) {
    const TemporaryFolder folder;
    ConvertOptions options;
    options.checkpoint =
        std::string(KINGLET_TEST_DATA "/opennmt/") + model.folder + "/model_step_7.pt";
    options.output = folder.Path("m.kgl");
    ASSERT_TRUE(Convert(options).ok());
    const auto file = *ModelFile::Open(options.output);
    const auto has = [&](const std::string& name) {
      return std::any_of(file->tensors().begin(), file->tensors().end(),
                         [&](const TensorView& tensor) { return tensor.name == name; });
    };
    EXPECT_TRUE(has("encoder." + words));
    EXPECT_EQ(has("decoder." + words), !model.shared);
    EXPECT_EQ(has("generator.0.weight"), !model.shared);
    EXPECT_TRUE(has("encoder." + positions));
    EXPECT_FALSE(has("decoder." + positions));
  }
}

TEST(OpenNmt, FewerBitsStillTranslate) {
  const std::string data = KINGLET_TEST_DATA "/opennmt/plain/";
  const TemporaryFolder folder;
  ConvertOptions options;
  options.checkpoint = data + "model_step_7.pt";
  options.output = folder.Path("m.kgl");
  options.bits = 9;
  options.prune = 0.1;
  const auto summary = Convert(options);
  ASSERT_TRUE(summary.ok()) << summary.status().message();
  const auto session = *Session::Create(OpenOn(options.output, "cpu"));
  EXPECT_TRUE(Translate(std::vector<uint32_t>{1, 2, 3}, {kEnd, 9, 0}, *session).ok());
}

// The log-probability of every word after each word of every target.
std::vector<double> AllAnswers(const std::string& model, const std::string& backend,
                               const std::vector<SentencePair>& pairs) {
  const auto session = *Session::Create(OpenOn(model, backend));
  std::vector<double> answers, all(session->model().vocabulary_size());
  for (const SentencePair& pair : pairs) {
    EXPECT_TRUE(FeedPair(pair, *session, [&](uint32_t) {
                  const Status status = session->LogProbabilities(std::span<double>(all));
                  answers.insert(answers.end(), all.begin(), all.end());
                  return status;
                }).ok());
  }
  return answers;
}

// Another program rounded weights and activations of encoder, decoder and cross-attention.
TEST(OpenNmt, CalibratedModelsEqualTheRulesInFloat64) {
  const Golden golden = Goldens()[0];
  const TemporaryFolder folder;
  ConvertOptions options = OptionsFor(golden, folder.Path("m.kgl"));
  options.bits = 9;
  options.calibration_text = golden.pairs;
  options.golden = golden.folder + "/golden_9bit.tsv";
  options.tolerance = 1e-6;
  const auto summary = Convert(options);
  ASSERT_TRUE(summary.ok()) << summary.status().message();
  EXPECT_EQ(summary->golden_positions, 67u);
  const auto pairs = *ReadPairs(golden.pairs, kStart);
  EXPECT_EQ(AllAnswers(options.output, "cpu", pairs), AllAnswers(options.output, "ref", pairs));
}

TEST(OpenNmt, CalibrationKeepsTheLossOfTheOriginal) {
  const std::vector<Golden> goldens = Goldens();
  if (!goldens.back().folder.ends_with("/opennmt-transformer"))
    GTEST_SKIP() << "KINGLET_CHECKPOINTS names no opennmt-transformer";
  const Golden& golden = goldens.back();
  const TemporaryFolder folder;
  ConvertOptions options;
  options.checkpoint = golden.checkpoint;
  options.output = folder.Path("m.kgl");
  options.bits = 9;
  options.calibration_text = golden.pairs;
  ASSERT_TRUE(Convert(options).ok());
  const auto pairs = *ReadPairs(golden.pairs, kStart);
  EXPECT_EQ(AllAnswers(options.output, "cpu", pairs), AllAnswers(options.output, "ref", pairs));
  double found = 0, expected = 0;
  for (const auto& fields : Fields(golden.folder + "/golden.tsv")) {
    expected -= std::stod(fields.back());
  }
  const auto session = *Session::Create(OpenOn(options.output, "cpu"));
  size_t scored = 0;
  for (const SentencePair& pair : pairs) {
    ASSERT_TRUE(FeedPair(pair, *session, [&](uint32_t id) {
                  found -= *session->LogProbability(id);
                  ++scored;
                  return Status();
                }).ok());
  }
  EXPECT_NEAR(found, expected, 0.02 * static_cast<double>(scored));
}

TEST(OpenNmt, FewerPositionsTakeLessMemory) {
  const TemporaryFolder folder;
  ConvertOptions options;
  options.checkpoint = KINGLET_TEST_DATA "/opennmt/plain/model_step_7.pt";
  options.output = folder.Path("m.kgl");
  options.memory_length = 8;
  ASSERT_TRUE(Convert(options).ok());
  const auto session = *Session::Create(OpenOn(options.output, "ref64"));
  EXPECT_EQ(session->Encode(std::vector<uint32_t>(10, 1)).code(), KINGLET_INVALID_ARGUMENT);
  ASSERT_TRUE(session->Encode(std::vector<uint32_t>(9, 1)).ok());
  // The first positions are kept.
  const auto pairs = *ReadPairs(KINGLET_TEST_DATA "/opennmt/plain/pairs.txt", kStart);
  ASSERT_TRUE(session->Encode(pairs[2].source).ok());
  ASSERT_TRUE(session->StepToken(kStart).ok());
  const auto answers = Fields(KINGLET_TEST_DATA "/opennmt/plain/golden.tsv");
  const auto third = std::find_if(answers.begin(), answers.end(),
                                  [](const auto& fields) { return fields[0] == "2"; });
  EXPECT_NEAR(*session->LogProbability(pairs[2].target[0]), std::stod(third->back()), 1e-9);

  options.memory_length = 40;
  const Status refused = Convert(options).status();
  EXPECT_NE(refused.message().find("mem-len: expected less than the 40 positions"),
            std::string::npos)
      << refused.message();
}

// The tensors of the fixture with one edit; the family converts them without the rest of `convert`.
Status LoadEdited(const std::function<void(CheckpointTensors&)>& edit) {
  const auto opened = OpenCheckpointFile(KINGLET_TEST_DATA "/opennmt/plain/model_step_7.pt");
  EXPECT_TRUE(opened.ok());
  CheckpointTensors weights = opened->tensors;
  edit(weights);
  const FamilyInput input{"model.pt", "", std::nullopt, weights, {}, &opened->checkpoint->root()};
  return kOpenNmt.load(input).status();
}

CheckpointTensor& Named(CheckpointTensors& weights, const std::string& name) {
  const auto found =
      std::find_if(weights.begin(), weights.end(),
                   [&](const CheckpointTensor& tensor) { return tensor.name == name; });
  EXPECT_NE(found, weights.end()) << name;
  return *found;
}

TEST(OpenNmt, NamesAndShapesAreAllChecked) {
  EXPECT_TRUE(LoadEdited([](CheckpointTensors&) {}).ok());
  const struct {
    std::function<void(CheckpointTensors&)> edit;
    const char* message;
  } edits[] = {
      {[](CheckpointTensors& weights) {
         Named(weights, "encoder.transformer.1.self_attn.linear_keys.bias").name = "x";
       },
       "missing encoder.transformer.1.self_attn.linear_keys.bias; unused 'x'"},
      {[](CheckpointTensors& weights) {
         Named(weights, "decoder.transformer_layers.2.context_attn.linear_query.weight").shape = {
             16, 15};
       },
       "linear_query.weight: expected [16, 16], found [16, 15]"},
      {[](CheckpointTensors& weights) {
         Named(weights, "decoder.transformer_layers.0.feed_forward.w_2.weight").shape = {16, 21};
       },
       "w_2.weight: expected [16, 20], found [16, 21]"},
      {[](CheckpointTensors& weights) {
         Named(weights, "generator.0.weight").shape = {22, 16};
       },
       "generator.0.weight: expected [23, 16]"},
      {[](CheckpointTensors& weights) {
         Named(weights, "encoder.embeddings.make_embedding.emb_luts.0.weight").shape = {18, 16};
       },
       "emb_luts.0.weight: expected [19, width]"},
      {[](CheckpointTensors& weights) {
         Named(weights, "decoder.embeddings.make_embedding.pe.pe").shape = {40, 16};
       },
       "pe.pe: expected [positions, 1, 16], found [40, 16]"},
      {[](CheckpointTensors& weights) {
         Named(weights, "decoder.embeddings.make_embedding.pe.pe").name = "y";
       },
       "missing decoder.embeddings.make_embedding.pe.pe"},
      {[](CheckpointTensors& weights) {
         Named(weights, "decoder.embeddings.make_embedding.emb_luts.0.weight").shape = {23, 18};
         Named(weights, "decoder.embeddings.make_embedding.pe.pe").shape = {40, 1, 18};
       },
       "linear_query.weight: expected [18, 18], found [16, 16]"},
  };
  for (const auto& one : edits) {
    const Status status = LoadEdited(one.edit);
    EXPECT_EQ(status.code(), KINGLET_INVALID_CHECKPOINT) << one.message;
    EXPECT_NE(status.message().find(one.message), std::string::npos) << status.message();
  }

  const FamilyInput alone{"model.safetensors", "", std::nullopt, CheckpointTensors{}};
  EXPECT_NE(kOpenNmt.load(alone).status().message().find("'opt' and 'vocab'"), std::string::npos);
}

}  // namespace
}  // namespace kinglet::opennmt_test
