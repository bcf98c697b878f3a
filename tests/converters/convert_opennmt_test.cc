// OpenNMT-py's Transformers and recurrent models, against answers and beams that other programs
// computed in float64 (tests/data/opennmt and opennmt-recurrent; make_fixtures.py there made them),
// and, of the checkpoints in KINGLET_CHECKPOINTS, that the original framework computed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "converters/checkpoints/checkpoint_file.h"
#include "converters/convert.h"
#include "converters/families/families.h"
#include "converters/texts/pair_file.h"
#include "converters/texts/token_file.h"
#include "runtime/accounting/trace.h"
#include "runtime/translation.h"
#include "tests/converters/synthetic.h"
#include "tests/converters/test_checkpoints.h"

namespace kinglet::convert_opennmt_test {
namespace {

namespace fs = std::filesystem;
constexpr uint32_t kStart = 2, kEnd = 3;
const std::string kTransformers = KINGLET_TEST_DATA "/opennmt/";

std::unique_ptr<Session> SessionOn(const std::string& path, const std::string& backend,
                                   uint32_t lanes = 1) {
  const auto model = Model::Open(path, {.backend = backend});
  EXPECT_TRUE(model.ok()) << model.status().message();
  return *Session::Create(*model, {.lanes = lanes});
}

// The fields of each line, between tabs.
std::vector<std::vector<std::string>> Fields(const std::string& path) {
  std::vector<std::vector<std::string>> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    lines.emplace_back();
    for (size_t from = 0; from <= line.size();) {
      const size_t to = std::min(line.find('\t', from), line.size());
      lines.back().push_back(line.substr(from, to - from));
      from = to + 1;
    }
  }
  EXPECT_FALSE(lines.empty()) << path;
  return lines;
}

std::string Joined(const std::vector<uint32_t>& ids) {
  std::string text;
  for (const uint32_t id : ids) text += (text.empty() ? "" : " ") + std::to_string(id);
  return text;
}

// A conversion, its pairs, and the golden values of all targets' tokens.
struct Translator {
  explicit Translator(const KeptConversion& converted)
      : path(converted.options.output),
        folder(fs::path(converted.options.golden).parent_path()),
        pairs(*ReadPairs(converted.options.ids, kStart)),
        answers(Fields(converted.options.golden)) {}

  // Feeds all pairs, and calls `after` after the token before each token of a target.
  template <class After>
  void Feed(Session& session, After after) const {
    for (const SentencePair& pair : pairs) {
      ASSERT_TRUE(FeedPair(pair, session, [&](uint32_t id) {
                    after(id);
                    return Status();
                  }).ok());
    }
  }

  const std::string path, folder;
  const std::vector<SentencePair> pairs;
  const std::vector<std::vector<std::string>> answers;
};

class OpenNmt : public testing::TestWithParam<std::string> {
 protected:
  const Translator translator_{ConvertedFixture(GetParam())};
};

// Every position, and the most probable words in their order.
TEST_P(OpenNmt, TheAnswersOnTheFastBackend) {
  const auto session = SessionOn(translator_.path, "cpu");
  std::vector<std::vector<std::string>> top;
  if (fs::exists(GetParam() + "/golden_topk.tsv")) top = Fields(GetParam() + "/golden_topk.tsv");
  size_t answer = 0, line = 0;
  translator_.Feed(*session, [&](uint32_t id) {
    const auto& fields = translator_.answers.at(answer++);
    EXPECT_NEAR(*session->LogProbability(id), std::stod(fields.back()), 1e-4) << answer;
    const std::vector<Candidate> candidates = *session->TopK(20);
    for (size_t rank = 0;
         line < top.size() && top[line][0] == fields[0] && top[line][1] == fields[1];
         ++rank, ++line) {
      EXPECT_EQ(candidates.at(rank).id, std::stoul(top[line][3])) << line;
      EXPECT_NEAR(candidates.at(rank).log_probability, std::stod(top[line][4]), 1e-4);
    }
  });
  EXPECT_EQ(answer, translator_.answers.size());
  EXPECT_EQ(line, top.size());
  // The model file stores the first sentence's answers, for `kinglet verify`.
  EXPECT_FALSE(session->model().file().description().golden->source_ids.empty());
}

// Translations in the order of sentences, of 1 and then of `most` to a sentence. Those of the
// original translator may be others of the same probability.
TEST_P(OpenNmt, TheBeamsOfAnotherProgram) {
  for (const auto& [file, lanes] : {std::pair("greedy.txt", 1U), std::pair("beam3.txt", 3U)}) {
    if (!fs::exists(GetParam() + "/" + file)) continue;
    const auto expected = *ReadIdLines(GetParam() + "/" + file);
    ASSERT_EQ(expected.size(), translator_.pairs.size());
    for (const char* backend : {"ref64", "cpu"}) {
      const auto session = SessionOn(translator_.path, backend, lanes);
      for (size_t i = 0; i < expected.size(); ++i) {
        const auto found = Translate(translator_.pairs[i].source, {kEnd, 9, 0}, *session);
        ASSERT_TRUE(found.ok()) << found.status().message();
        EXPECT_EQ(found->front().ids, expected[i]) << file << " " << i;
      }
    }
  }
  if (!fs::exists(GetParam() + "/beam.tsv")) return;
  const auto session = SessionOn(translator_.path, "ref64", 3);
  const auto lines = Fields(GetParam() + "/beam.tsv");
  size_t line = 0;
  for (const SentencePair& pair : translator_.pairs) {
    for (const uint32_t n_best : {1U, 3U}) {
      TranslationOptions options{kEnd, 7, 0};
      options.n_best = n_best;
      const auto found = Translate(pair.source, options, *session);
      ASSERT_TRUE(found.ok()) << found.status().message();
      for (const Translation& translation : *found) {
        ASSERT_LT(line, lines.size());
        EXPECT_EQ(Joined(translation.ids), lines[line].at(4)) << line;
        EXPECT_NEAR(translation.log_probability, std::stod(lines[line].at(3)), 1e-9);
        ++line;
      }
    }
  }
  EXPECT_EQ(line, lines.size());
}

// Weights and activations of 9 bits: the same bits on every backend, near the values of floats.
TEST_P(OpenNmt, Calibrated) {
  const TemporaryFolder folder;
  ConvertOptions options = ConvertedFixture(GetParam()).options;
  options.calibration_text = options.ids;
  options.golden = options.ids = "";
  options.output = folder.Path("m.kgl");
  options.bits = 9;
  const auto summary = Convert(options);
  ASSERT_TRUE(summary.ok()) << summary.status().message();
  double expected = 0;
  for (const auto& fields : translator_.answers) expected += std::stod(fields.back());
  std::vector<std::vector<double>> answers(3);
  const char* const backends[] = {"cpu", "ref", "ref64"};
  for (size_t i = 0; i < 3; ++i) {
    const auto session = SessionOn(options.output, backends[i]);
    translator_.Feed(*session,
                     [&](uint32_t id) { answers[i].push_back(*session->LogProbability(id)); });
  }
  EXPECT_EQ(answers[0], answers[1]);
  const double found = std::accumulate(answers[2].begin(), answers[2].end(), 0.0);
  EXPECT_NEAR(found, expected, 0.05 * static_cast<double>(answers[2].size()));
  EXPECT_NE(found, expected);
}

// A state after the source has been encoded, before and after the first word, as a blob too.
TEST_P(OpenNmt, StatesHoldTheSource) {
  const auto model = *Model::Open(translator_.path, {});
  const auto session = *Session::Create(model, {.lanes = 2});
  const std::vector<uint32_t> source = {3, 1, 4}, other = {5};
  ASSERT_TRUE(session->Encode(source).ok());
  const State encoded = *session->Save();
  ASSERT_TRUE(session->StepToken(kStart).ok());
  const State stepped = *session->Save();
  ASSERT_TRUE(session->StepToken(7).ok());
  const double expected = *session->LogProbability(9);
  ASSERT_TRUE(session->Encode(other, 1).ok());
  ASSERT_TRUE(session->StepToken(kStart, 1).ok());
  for (const State& state : {encoded, stepped}) {
    std::vector<std::byte> blob(state.BlobBytes());
    state.WriteBlob(blob);
    const auto read = State::ReadBlob(model, blob);
    ASSERT_TRUE(read.ok()) << read.status().message();
    ASSERT_TRUE(session->Restore(*read, 1).ok());
    if (read->position() == 0) {
      ASSERT_TRUE(session->StepToken(kStart, 1).ok());
    }
    ASSERT_TRUE(session->StepToken(7, 1).ok());
    EXPECT_EQ(*session->LogProbability(9, 1), expected);
  }
}

INSTANTIATE_TEST_SUITE_P(All, OpenNmt, testing::ValuesIn(FixtureFolders("opennmt")),
                         FolderTestName);

// The translator's own beams, or others of the same probability.
TEST(OpenNmtFiles, TheBeamsOfTheOriginal) {
  const char* const place = std::getenv("KINGLET_CHECKPOINTS");
  const std::string root = place == nullptr ? "" : place;
  const std::string recipes = KINGLET_EXAMPLES "/recipes/reference-opennmt-dpq";
  const struct {
    std::string folder, checkpoint, recipe;
  } originals[] = {{root + "/opennmt-rnn", "/model_step_2800.pt", ""},
                   {root + "/reference-opennmt-rnn-dpq", "/model.pt", recipes + ".json"},
                   {root + "/reference-opennmt-rnn-dpq", "/model.pt", recipes + "-codes.json"}};
  for (const auto& original : originals) {
    if (!fs::exists(original.folder)) GTEST_SKIP() << "KINGLET_CHECKPOINTS has none";
    ConvertOptions options;
    options.checkpoint = original.folder + original.checkpoint;
    options.recipe = original.recipe;
    options.golden = original.folder + "/golden.tsv";
    options.ids = original.folder + "/tokens.txt";
    options.tolerance = 1e-6;
    const KeptConversion& converted = ConvertOnce(original.folder + original.recipe, options);
    ASSERT_TRUE(converted.summary.ok()) << converted.summary.status().message();
    EXPECT_EQ(converted.summary->family, "opennmt");
    const Translator translator(converted);
    const auto session = SessionOn(translator.path, "cpu", 5);
    for (const auto& [file, n_best] :
         {std::pair("/golden_beam.tsv", 1U), {"/golden_nbest.tsv", 5U}}) {
      const auto lines = Fields(original.folder + file);
      size_t line = 0;
      for (const SentencePair& pair : translator.pairs) {
        TranslationOptions search{kEnd, 100, 0};
        search.n_best = n_best;
        const auto found = Translate(pair.source, search, *session);
        ASSERT_TRUE(found.ok()) << found.status().message();
        ASSERT_EQ(found->size(), n_best);
        for (const Translation& translation : *found) {
          EXPECT_NEAR(translation.log_probability, std::stod(lines.at(line).at(3)), 1e-4);
          ++line;
        }
      }
      EXPECT_EQ(line, lines.size());
    }
  }
}

// Units of either language. They stay in the model, so their vectors are not rounded to a table.
TEST(OpenNmtFiles, UnitsThatAreKept) {
  const std::string define = kTransformers + "define";
  const TemporaryFolder folder;
  ConvertOptions options = FixtureOptions(define);
  options.output = folder.Path("kept.kgl");
  options.golden = define + "/golden_kept.tsv";
  options.tolerance = 1e-9;
  options.define_cache_rows = 4;
  const auto summary = Convert(options);
  ASSERT_TRUE(summary.ok()) << summary.status().message();
  const auto file = ModelFile::Open(options.output);
  const ModelDescription& description = (*file)->description();
  const auto* encoder = FindBlock<TransformerEncoder>(description);
  for (const AdaptiveEmbedding* embedding :
       {&encoder->embedding, FindBlock<AdaptiveEmbedding>(description)}) {
    ASSERT_EQ(embedding->units.size(), 1u);
    EXPECT_EQ(embedding->units[0].cache_rows, 4u);
    EXPECT_EQ(embedding->bins.size(), 2u);
  }
  const auto expected = *ReadIdLines(define + "/beam3.txt");
  const auto pairs = *ReadPairs(options.ids, kStart);
  const auto session = SessionOn(options.output, "cpu", 3);
  for (size_t i = 0; i < pairs.size(); ++i) {
    EXPECT_EQ(Translate(pairs[i].source, {kEnd, 9, 0}, *session)->front().ids, expected[i]);
  }

  uint64_t cached = 0;  // of a source: a word's row is made once
  for (const auto& [taken, count] :
       EncoderTrace(session->model().plan(), std::vector<uint32_t>{5, 5, 6}).paths) {
    if (taken.row_is_cached) cached += count;
  }
  EXPECT_EQ(cached, 1u);

  options = FixtureOptions(kTransformers + "plain");
  options.output = folder.Path("none.kgl");
  options.define_cache_rows = 4;
  EXPECT_NE(Convert(options).status().message().find("keep-define"), std::string::npos);
}

// A recipe declares a unit with other names; its outputs for all words are the family's table.
TEST(OpenNmtFiles, ARecipeDeclaresUnitsThatTheFamilyDoesNotKnow) {
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
  ConvertOptions options = FixtureOptions(kTransformers + "define");
  options.output = folder.Path("m.kgl");
  options.tolerance = 1e-9;
  options.recipe = folder.Write("r.json", R"({"family": "opennmt", "tables": {)" + unit("encoder") +
                                              ", " + unit("decoder") + "}}");
  const auto summary = Convert(options);
  ASSERT_TRUE(summary.ok()) << summary.status().message();

  options.recipe =
      folder.Write("r.json", R"({"family": "opennmt", "tables": {)" + unit("encoder") + "}}");
  ASSERT_TRUE(Convert(options).ok());  // the decoder's is one that the family knows
}

TEST(OpenNmtFiles, UnitsAreCheckedAgainstTheVocabulary) {
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

TEST(OpenNmtFiles, SharedTablesAreStoredOnce) {
  const std::string words = "embeddings.make_embedding.emb_luts.0.weight";
  const std::string positions = "embeddings.make_embedding.pe.pe";
  const struct {
    const char* folder;
    bool shared;
  } models[] = {{"plain", false}, {"shared-old-names", true}};
  for (const auto& model : models) {
    const auto file =
        *ModelFile::Open(ConvertedFixture(kTransformers + model.folder).options.output);
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

// Another program rounded weights and activations of encoder, decoder and cross-attention.
TEST(OpenNmtFiles, CalibratedModelsEqualTheRulesInFloat64) {
  const TemporaryFolder folder;
  ConvertOptions options = FixtureOptions(kTransformers + "plain");
  options.output = folder.Path("m.kgl");
  options.bits = 9;
  options.calibration_text = options.ids;
  options.golden = kTransformers + "plain/golden_9bit.tsv";
  const auto summary = Convert(options);
  ASSERT_TRUE(summary.ok()) << summary.status().message();
  EXPECT_EQ(summary->golden_positions, 67u);
}

TEST(OpenNmtFiles, FewerPositionsTakeLessMemory) {
  const TemporaryFolder folder;
  ConvertOptions options;
  options.checkpoint = KINGLET_TEST_DATA "/opennmt/plain/model_step_7.pt";
  options.output = folder.Path("m.kgl");
  options.memory_length = 8;
  ASSERT_TRUE(Convert(options).ok());
  const auto session = SessionOn(options.output, "ref64");
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

}  // namespace
}  // namespace kinglet::convert_opennmt_test
