// What only fairseq's language models have: text blocks and characters, in tests/data and in the
// folder that KINGLET_CHECKPOINTS names. Their numbers: convert_fixtures_test.cc.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "converters/checkpoints/checkpoint_file.h"
#include "converters/convert.h"
#include "converters/golden.h"
#include "converters/texts/token_file.h"
#include "runtime/scored_stream.h"
#include "runtime/session.h"
#include "tests/converters/converted_streams.h"
#include "tests/converters/synthetic.h"
#include "tests/converters/table_forms.h"
#include "tests/converters/test_checkpoints.h"

namespace kinglet::convert_fairseq_test {
namespace {

// log p of every token of the text, text block by text block. Each text block is a new stream that
// begins with `context` tokens of the text block before, which are not scored.
std::vector<double> ScoreBlocks(const std::string& file, const std::string& backend,
                                const std::vector<uint32_t>& ids, size_t block, size_t context) {
  const auto model = *Model::Open(file, {.backend = backend});
  const auto session = *Session::Create(model);
  const std::vector<uint32_t> stream = ScoredStream(model->file().description(), ids);
  std::vector<double> scores;
  for (size_t first = 0; first < ids.size(); first += block - context) {
    EXPECT_TRUE(session->Reset().ok());
    for (size_t at = first - std::min(first, context);
         at < std::min(ids.size(), first + block - context); ++at) {
      EXPECT_TRUE(session->StepToken(stream[at]).ok());
      if (at >= first) scores.push_back(*session->LogProbability(stream[at + 1]));
    }
  }
  return scores;
}

void ExpectNear(const std::vector<double>& found, const GoldenFile& golden, double tolerance) {
  ASSERT_EQ(found.size(), golden.values.size());
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(golden.values[i].position, i);
    EXPECT_NEAR(found[i], golden.values[i].log_probability, tolerance) << i;
  }
}

bool HasCharacters(const std::string& folder) {
  return std::filesystem::path(folder).filename().string().find("char") != std::string::npos;
}

class ConvertFairseq : public testing::TestWithParam<std::string> {};

// The text is longer than one text block, so the golden values also test the start of a new one.
TEST_P(ConvertFairseq, BlocksAndContextAreFairseqs) {
  const auto& [options, summary] = ConvertedFixture(GetParam());
  ASSERT_TRUE(summary.ok());
  const auto ids = *ReadIds(options.ids);
  const bool small = GetParam().starts_with(KINGLET_TEST_DATA);
  if (!small && HasCharacters(GetParam())) GTEST_SKIP() << "golden values of one block only";
  const auto golden = *ReadGolden(
      GetParam() + (small ? "/golden_context.tsv" : "/golden_block160.tsv"), options.ids);
  const auto score = [&, &file = options.output](const char* backend) {
    return small ? ScoreBlocks(file, backend, ids, 16, 6) : ScoreBlocks(file, backend, ids, 160, 0);
  };
  ExpectNear(score("ref64"), golden, options.tolerance);
  ExpectNear(score("cpu"), golden, 1e-4);
}

INSTANTIATE_TEST_SUITE_P(All, ConvertFairseq, testing::ValuesIn(FixtureFolders("fairseq")),
                         FolderTestName);

double MeanLossOf(const std::vector<double>& scores) {
  double sum = 0;
  for (const double score : scores) sum -= score;
  return sum / static_cast<double>(scores.size());
}

// Tied projections are transposed by their flag, not by a shape that allows both.
TEST(ConvertFairseqFiles, ParametersAreThoseOfTheFramework) {
  const TemporaryFolder folder;
  ConvertOptions options = FixtureOptions(KINGLET_TEST_DATA "/fairseq-variants/args-tied-legacy");
  options.output = folder.Path("model.kgl");
  const auto summary = Convert(options);
  ASSERT_TRUE(summary.ok());
  const uint64_t tables = 12 * 16 + 14 * 8 + 14 * 4, projections = 16 * (16 + 8 + 4);
  const uint64_t layer = 4 * (16 * 16 + 16) + 2 * (2 * 16) + (20 * 16 + 20) + (16 * 20 + 16);
  EXPECT_EQ(summary->parameters, tables + projections + 2 * 16 + 2 * layer);
}

// The rows that fairseq's own module gives in float64, of its special words, of words longer than a
// spelling, of ideographs and of accents.
TEST(ConvertFairseqFiles, RowsOfACharacterCnn) {
  const char* checkpoints = std::getenv("KINGLET_CHECKPOINTS");
  const std::string original =
      std::string(checkpoints == nullptr ? "" : checkpoints) + "/fairseq-char";
  if (!std::filesystem::exists(original)) GTEST_SKIP() << "KINGLET_CHECKPOINTS has no fairseq-char";
  const auto& [options, summary] = ConvertedFixture(original);
  ASSERT_TRUE(summary.ok());
  const auto rows = *OpenCheckpointFile(original + "/character_table.npz");
  const auto tensor = [&rows](const std::string& name) {
    return *std::find_if(rows.tensors.begin(), rows.tensors.end(),
                         [&name](const CheckpointTensor& each) { return each.name == name; });
  };
  const std::vector<int64_t> ids = *ReadIntegers(tensor("ids"));
  const std::vector<float> expected = *ReadFinite(tensor("rows"));
  const auto file = *ModelFile::Open(options.output);
  const std::vector<float> table = DecodedValues(file->tensors()[0]);
  ASSERT_EQ(expected.size(), ids.size() * 64);
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(table[static_cast<size_t>(ids[i / 64]) * 64 + i % 64], expected[i], 2e-7) << i;
  }
}

// A table that was computed takes every encoding that a trained one takes.
TEST(ConvertFairseqFiles, ACharacterTableInEveryEncoding) {
  const std::string folder = KINGLET_TEST_DATA "/fairseq-variants/args-characters-adaptive";
  const TemporaryFolder output;
  ConvertOptions options = FixtureOptions(folder);
  options.output = output.Path("model.kgl");
  options.golden = options.ids = "";
  const auto ids = *ReadIds(folder + "/tokens.txt");
  const double expected =
      MeanLossOf(ScoreBlocks(ConvertedFixture(folder).options.output, "cpu", ids, ids.size(), 0));
  const std::string code = R"("code", "positions": 8, "sub_vectors": )";
  for (const std::string& pass :
       {std::string(R"("quantise", "bits": 8)"), std::string(R"("half")"),
        std::string(R"("prune", "fraction": 0.25)"), std::string(R"("low_rank", "rank": 12)"),
        code + "240", code + R"(128, "combine": "sum")", code + R"(240, "mapping": "shuffled")",
        code + R"(240, "mapping": "hashed")"}) {
    options.recipe =
        output.Write("recipe.json", R"({"family": "fairseq", "passes": [{"pass": )" + pass +
                                        R"(, "tensors": ["decoder.embed_tokens.weight"]}]})");
    const auto summary = Convert(options);
    ASSERT_TRUE(summary.ok()) << pass << ": " << summary.status().message();
    const auto reference = ScoreBlocks(options.output, "ref", ids, ids.size(), 0);
    EXPECT_EQ(reference, ScoreBlocks(options.output, "cpu", ids, ids.size(), 0)) << pass;
    EXPECT_NEAR(MeanLossOf(reference), expected, 1) << pass;
  }
}

// A CNN that stays in the model: the golden values of the table, and in float32 and 9 bits the same
// bits on every backend.
TEST(ConvertFairseqFiles, ACharacterCnnThatStays) {
  for (const std::string name : {"args-characters-adaptive", "cfg-characters-plain"}) {
    const std::string folder = std::string(KINGLET_TEST_DATA) + "/fairseq-variants/" + name;
    const TemporaryFolder output;
    ConvertOptions options = FixtureOptions(folder);
    options.output = output.Path("model.kgl");
    options.character_cache_rows = 3;
    options.tolerance = 1e-6;
    const auto summary = Convert(options);
    ASSERT_TRUE(summary.ok()) << name << ": " << summary.status().message();

    const auto ids = *ReadIds(folder + "/tokens.txt");
    for (const int bits : {0, 9}) {
      if (bits > 0) {
        options.golden = options.ids = "";
        options.bits = bits;
        ASSERT_TRUE(Convert(options).ok());
      }
      const auto expected = ScoreBlocks(options.output, "ref", ids, 16, 6);
      EXPECT_EQ(expected, ScoreBlocks(options.output, "cpu", ids, 16, 6)) << bits;
    }
  }
}

TEST(ConvertFairseqFiles, NoCharacterCnnToKeep) {
  const TemporaryFolder output;
  ConvertOptions options = FixtureOptions(KINGLET_TEST_DATA "/fairseq-variants/args-tied-legacy");
  options.output = output.Path("model.kgl");
  options.character_cache_rows = 3;
  EXPECT_EQ(Convert(options).status().message(),
            "convert: keep-characters: expected a character CNN as the input, found none");
  ConvertOptions without = options;
  without.vocabulary = "";
  EXPECT_EQ(Convert(without).status().message(),
            "convert: keep-characters: expected --vocab FILE with it (fairseq's dict.txt), as the "
            "model reads words by their bytes, found none");
  options.character_cache_rows = 0;
  EXPECT_EQ(Convert(options).status().message(),
            "convert: keep-characters: expected 1 to 2147483647 rows, found 0");
}

// Another input replaces the CNN: the CNN's tensors are marked as unused, and the recipe's codes
// are run.
TEST(ConvertFairseqFiles, ACharacterCnnIsReplaced) {
  const std::string source = KINGLET_TEST_DATA "/fairseq-variants/args-characters-adaptive";
  const TemporaryFolder folder;
  ConvertOptions options = FixtureOptions(source);
  options.output = folder.Path("model.kgl");
  options.golden = options.ids = "";
  const auto original = *ModelFile::Open(ConvertedFixture(source).options.output);
  const auto& words = original->tensors()[0];
  ASSERT_EQ(words.name, "decoder.embed_tokens.weight");
  TinyTensors tensors;
  tensors.Floats("book", {4, words.shape[1] / 2});
  tensors.Integers("codes", {words.shape[0], 2}, 4);
  folder.Write("tables", tensors.Safetensors());
  options.recipe = folder.Write("recipe.json", R"({"family": "fairseq",
    "sources": {"t": ")" + folder.Path("tables") + R"("}, "tables": {"decoder.embed_tokens":
    {"codes": {"combine": "concatenate", "pools": "one", "codebook": "t.book",
               "codes": "t.codes"}}}})");
  options.trust_recipe_paths = true;
  const auto summary = Convert(options);
  ASSERT_TRUE(summary.ok()) << summary.status().message();
  ASSERT_EQ(summary->notes.size(), 1u);
  EXPECT_NE(summary->notes[0].find("others are marked as unused"), std::string::npos)
      << summary->notes[0];
  const auto coded = *ModelFile::Open(options.output);
  EXPECT_NE(coded->tensors()[0].coded(), nullptr);
  const auto ids = *ReadIds(source + "/tokens.txt");
  const auto scores = ScoreBlocks(options.output, "ref", ids, ids.size(), 0);
  EXPECT_EQ(scores, ScoreBlocks(options.output, "cpu", ids, ids.size(), 0));
  EXPECT_NE(scores,
            ScoreBlocks(ConvertedFixture(source).options.output, "ref", ids, ids.size(), 0));
}

// An option that no table has is refused, unless the user ignores it.
TEST(ConvertFairseqFiles, AnUnknownOption) {
  const std::string original = KINGLET_TEST_DATA "/fairseq-variants/args-tied-legacy";
  const TemporaryFolder folder;
  std::ifstream file(original + "/model.pt", std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), {}};
  const std::string known = "activation_fn", unknown = "activation_fx";
  const size_t at = bytes.find(known);
  ASSERT_NE(at, bytes.npos);
  bytes.replace(at, known.size(), unknown);
  ConvertOptions options = FixtureOptions(original);
  options.output = folder.Path("model.kgl");
  options.checkpoint = folder.Write("model.pt", bytes);
  const Status refused = Convert(options).status();
  EXPECT_EQ(refused.code(), KINGLET_UNSUPPORTED);
  EXPECT_TRUE(refused.message().starts_with(
      "checkpoint: args.activation_fx: expected an option that kinglet knows, found "
      "'activation_fx' = 'relu' (--ignore-option 'activation_fx' if the network's output does not "
      "depend on it)"))
      << refused.message();
  options.ignored_options = {unknown};
  const auto summary = Convert(options);
  ASSERT_TRUE(summary.ok()) << summary.status().message();
  EXPECT_EQ((*ModelFile::Open(options.output))->description().provenance.options,
            "ignored option activation_fx");
  options.ignored_options = {"dropout"};
  options.checkpoint = original;
  EXPECT_EQ(
      Convert(options).status().message(),
      "convert: ignore-option: expected options of the checkpoint that kinglet does not know, "
      "found 'dropout' (remove it from --ignore-option)");
}

}  // namespace
}  // namespace kinglet::convert_fairseq_test
