#include "tools/coded_tables.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <variant>

#include "tests/synthesis/coded_synthesis.h"

namespace kinglet::coded_tables_test {
namespace {

using Json = nlohmann::ordered_json;

CodedSynthesisSpec Small() {
  CodedSynthesisSpec spec;
  spec.vocabulary_size = 30;
  spec.width = 12;
  spec.input = {4, {8}};
  spec.units = {8};
  spec.output = {4, {5, 4, 4, 4}};
  return spec;
}

std::vector<CodedTableFacts> FactsOf(const ModelDraft& draft) {
  return CodedTablesOf(**ModelFile::FromBytes(*SerialiseModel(draft)));
}

TEST(CodedTables, FactsByHand) {
  const auto tables = FactsOf(*SynthesiseCoded(Small()));
  ASSERT_EQ(tables.size(), 2u);
  const CodedTableFacts& input = tables[0];
  EXPECT_EQ(input.name, "embed.table");
  EXPECT_EQ(input.encoding, "coded4x3/concatenate");
  EXPECT_EQ(input.codebook, "f32");
  EXPECT_EQ(input.choices, 8u);
  EXPECT_EQ(input.codes_bytes, 30u * 4 * 3 / 8);
  EXPECT_EQ(input.codebook_bytes, 8u * 3 * 4);
  // Full table: 30 x 12 floats; codes of 3 bits; one pool of 8 x 3 floats.
  EXPECT_DOUBLE_EQ(input.ratios.plain, 32.0 * 30 * 12 / (30 * 4 * 3 + 32 * 24));
  EXPECT_DOUBLE_EQ(input.ratios.published, 32.0 * 30 * 13 / (30 * 4 * 3 + 32 * 24));
  EXPECT_DOUBLE_EQ(input.StoredRatio(), input.ratios.plain);
  const CodedTableFacts& output = tables[1];
  EXPECT_EQ(output.sub_vectors, 17u);
  EXPECT_EQ(output.choices, 5u);
  EXPECT_DOUBLE_EQ(output.slim_ratio, 17.0 / (4 * 30));
  // The file rounds log2 5 up to 3 bits, the formula does not.
  EXPECT_GT(output.ratios.plain, output.StoredRatio());
}

TEST(CodedTables, HashedCodesTakeNothing) {
  ModelDraft draft = *SynthesiseCoded(Small());
  for (EncodedTensor& tensor : draft.tensors) {
    if (auto* coded = std::get_if<Coded>(&tensor.values)) coded->codes = HashSeed{3};
  }
  const auto tables = FactsOf(draft);
  EXPECT_EQ(tables[0].codes_bytes, 0u);
  EXPECT_DOUBLE_EQ(tables[0].ratios.plain, 30.0 * 12 / 24);
  EXPECT_DOUBLE_EQ(tables[0].StoredRatio(), 30.0 * 12 / 24);
}

TEST(CodedTables, TextAndJson) {
  EXPECT_EQ(CodedTablesText({}), "");
  const auto tables = FactsOf(*SynthesiseCoded(Small()));
  const std::string text = CodedTablesText(tables);
  EXPECT_NE(text.find("30 x 12"), std::string::npos) << text;
  EXPECT_NE(text.find("4 of 8"), std::string::npos) << text;
  JsonLine line;
  AppendCodedTables(tables, line);
  const Json json = Json::parse(line.Finish())["tables"];
  ASSERT_EQ(json.size(), 2u);
  EXPECT_EQ(json[1]["name"], "softmax.table");
  EXPECT_EQ(json[1]["sub_vectors"], 17);
  EXPECT_NEAR(json[0]["ratio_with_bias"].get<double>(), tables[0].ratios.published, 1e-6);
  JsonLine empty;
  AppendCodedTables({}, empty);
  EXPECT_EQ(empty.Finish(), "{\"tables\":[]}\n");
}

}  // namespace
}  // namespace kinglet::coded_tables_test
