#include "bench/technique_measure.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/synthesis/coded_synthesis.h"
#include "tests/tools/run_command.h"

namespace kinglet::technique_measure_test {
namespace {

// Expected sizes worked out by hand: codes of 3 bits; codebooks of 7 x 3 and 17 x 2 floats.
TEST(TechniqueMeasure, BytesOfCodedTables) {
  CodedSynthesisSpec spec;
  spec.vocabulary_size = 30;
  spec.width = 12;
  spec.input = {4, {7}};
  spec.units = {8};
  spec.output = {4, {5, 4, 4, 4}};
  spec.output_bias = true;
  const auto model = *Model::FromBytes(*SerialiseModel(*SynthesiseCoded(spec)), {});
  const TableBytes found = TableBytesOf(*model);
  EXPECT_EQ(found.input, 30 * 4 * 3 / 8 + 7 * 3 * 4u);
  EXPECT_EQ(found.output, 30 * 4 * 3 / 8 + 17 * 2 * 4u);
  EXPECT_EQ(found.both, found.input + found.output);
}

// A table that input and output share counts once; the input's bins have their own projections.
TEST(TechniqueMeasure, BytesOfSharedTables) {
  const auto model = *Model::FromBytes(*SerialiseModel(TinyMicronet({})), {});
  const TableBytes found = TableBytesOf(*model);
  EXPECT_LT(found.both, found.input + found.output);
  EXPECT_GE(found.both, std::max(found.input, found.output));
}

TEST(TechniqueMeasure, SaysWhatTheCommandSays) {
  const std::string demo = KINGLET_DEMO_DATA;
  const CommandFolder folder;
  folder.Write("text.txt", "the <unk> of the <unk>\nin the year\n");
  ConvertOptions options;
  options.checkpoint = demo;
  options.vocabulary = demo + "/vocab.txt";
  options.cache_capacity = 0;
  options.output = folder.Path("m.kgl");
  const auto found = MeasureTechnique(options, {folder.Path("text.txt")});
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_EQ(found->file_bytes, folder.Read("m.kgl").size());
  const auto lines = folder.Run("score m.kgl --text text.txt --json").Json();
  EXPECT_NEAR(found->perplexity / lines.back()["ppl"].get<double>(), 1, 1e-7);
  EXPECT_TRUE(found->coded.empty());

  folder.Write("one.txt", "the");
  options.output = folder.Path("n.kgl");
  EXPECT_TRUE(MeasureTechnique(options, {folder.Path("one.txt")}).ok());  // "the <eos>"
  folder.Write("none.txt", "");
  EXPECT_FALSE(MeasureTechnique(options, {folder.Path("none.txt")}).ok());
  options.checkpoint = folder.Path("missing.pt");
  EXPECT_FALSE(MeasureTechnique(options, {folder.Path("text.txt")}).ok());
}

// Ids instead of words; after a start token the first of them is scored too.
TEST(TechniqueMeasure, AModelWithAStartToken) {
  const std::string data = KINGLET_TEST_DATA "/fairseq-variants/cfg-characters-plain";
  const CommandFolder folder;
  ConvertOptions options;
  options.checkpoint = data + "/model.pt";
  options.output = folder.Path("m.kgl");
  const auto found = MeasureTechnique(options, {data + "/tokens.txt", true});
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_EQ(found->tables.input, 40 * 16 * 4u);
  const auto lines = folder.Run("score m.kgl --json --ids " + data + "/tokens.txt").Json();
  EXPECT_EQ(lines.back()["scored"], 60);
  EXPECT_NEAR(found->perplexity / lines.back()["ppl"].get<double>(), 1, 1e-7);
}

}  // namespace
}  // namespace kinglet::technique_measure_test
