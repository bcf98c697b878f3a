#include "converters/recipe/recipe_pass.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "tests/converters/recipe/recipe_source.h"

namespace kinglet::recipe_pass_test {
namespace {

// The tests of ApplyRecipePasses (apply_passes_test.cc) go through every refusal.
template <class Pass>
Pass Parsed(const std::string& text) {
  const auto pass = ParsePass(NodeOf(text));
  EXPECT_TRUE(pass.ok()) << pass.status().message();
  return pass.ok() ? std::get<Pass>(pass->form) : Pass{};
}

std::string RefusalOf(const std::string& text) {
  const auto pass = ParsePass(NodeOf(text));
  return pass.ok() ? "no refusal" : pass.status().message();
}

TEST(ParsePass, ReadsEveryPass) {
  EXPECT_EQ(Parsed<PrunePass>(R"({"pass": "prune", "fraction": 0.25})").fraction, 0.25);
  const auto quantise = Parsed<QuantisePass>(R"({"pass": "quantise", "bits": 9})");
  EXPECT_EQ(quantise.bits, 9);
  EXPECT_FALSE(quantise.per_tensor);
  EXPECT_TRUE(
      Parsed<QuantisePass>(R"({"pass": "quantise", "bits": 9, "scale": "tensor"})").per_tensor);
  Parsed<HalvePass>(R"({"pass": "half", "tensors": ["x"]})");
  EXPECT_EQ(Parsed<LowRankPass>(R"({"pass": "low_rank", "rank": 3})").rank, 3u);
  const auto low_rank = Parsed<LowRankPass>(R"({"pass": "low_rank", "error": 0.5})");
  EXPECT_FALSE(low_rank.rank);
  EXPECT_EQ(low_rank.error, 0.5);
  const auto calibrate =
      Parsed<CalibratePass>(R"({"pass": "calibrate", "text": "t.txt", "bits": 7})");
  EXPECT_EQ(calibrate.text, "t.txt");
  EXPECT_TRUE(calibrate.ranges.empty());
  EXPECT_EQ(calibrate.rule.bits, 7);
  EXPECT_EQ(calibrate.rule.by, RangeRule::By::kLargest);
}

TEST(ParsePass, ReadsHowScalesAndRangesAreFound) {
  EXPECT_EQ(Parsed<QuantisePass>(R"({"pass": "quantise", "bits": 4, "scale_by": "mse"})").scale_by,
            ScaleBy::kLeastSquares);
  const std::string calibrate = R"({"pass": "calibrate", "text": "t.txt", "bits": 9, "range_by": )";
  EXPECT_EQ(Parsed<CalibratePass>(calibrate + R"("mse"})").rule.by, RangeRule::By::kLeastSquares);
  const RangeRule rule =
      Parsed<CalibratePass>(calibrate + R"("percentile", "percentile": 99.5})").rule;
  EXPECT_EQ(rule.by, RangeRule::By::kPercentile);
  EXPECT_EQ(rule.percentile, 99.5);
  EXPECT_EQ(RefusalOf(calibrate + R"("mse", "percentile": 99})"),
            "recipe: r, line 1, column 84, /percentile: expected \"percentile\" only with "
            "\"range_by\": \"percentile\", found 99");
  EXPECT_EQ(RefusalOf(calibrate + R"("percentile", "percentile": 0})"),
            "recipe: r, line 1, column 91, /percentile: expected above 0, at most 100, found 0");
  EXPECT_EQ(RefusalOf(R"({"pass": "quantise", "bits": 4, "scale_by": "least"})"),
            "recipe: r, line 1, column 45, /scale_by: expected \"max\" or \"mse\", found 'least'");
}

TEST(ParsePass, ReadsTheRangesOfTraining) {
  const std::string calibrate = R"({"pass": "calibrate", "bits": 8, "ranges": )";
  const auto pass = Parsed<CalibratePass>(calibrate + R"({"a.input": 0.1, "a.output": 0}})");
  EXPECT_EQ(pass.ranges, (std::map<std::string, float>{{"a.input", 0.1F}, {"a.output", 0.0F}}));
  EXPECT_EQ(pass.rule.bits, 8);
  EXPECT_EQ(pass.text, "");
  EXPECT_EQ(RefusalOf(calibrate + R"({}})"),
            "recipe: r, line 1, column 44, /ranges: expected a range for each quantiser, found "
            "none");
  for (const std::string wrong : {"-1", "1e+39"}) {
    EXPECT_EQ(RefusalOf(calibrate + R"({"a": )" + wrong + "}}"),
              "recipe: r, line 1, column 50, /ranges/a: expected a range of 0 or more, finite in "
              "float32, found " +
                  wrong);
  }
  EXPECT_NE(RefusalOf(calibrate + R"({"a": 1}, "text": "t"})").find("expected a key"),
            std::string::npos);
}

TEST(ParsePass, ReadsTheChoicesOfCodes) {
  const auto plain = Parsed<CodePass>(R"({"pass": "code", "positions": 2, "sub_vectors": 8})");
  EXPECT_FALSE(plain.sum);
  EXPECT_EQ(plain.mapping, CodePass::Mapping::kClustered);
  EXPECT_EQ(plain.pools, CodePass::Pools::kEach);
  EXPECT_EQ(plain.seed, 1u);
  EXPECT_EQ(plain.iterations, 25u);
  EXPECT_EQ(plain.restarts, 1u);
  const auto slim = Parsed<CodePass>(
      R"({"pass": "code", "positions": 2, "sub_vectors": 9, "mapping": "shuffled",
          "pools": "one", "seed": 4})");
  EXPECT_EQ(slim.mapping, CodePass::Mapping::kShuffled);
  EXPECT_EQ(slim.pools, CodePass::Pools::kOne);
  EXPECT_EQ(slim.seed, 4u);
  const auto sum = Parsed<CodePass>(
      R"({"pass": "code", "positions": 2, "sub_vectors": 8, "combine": "sum", "sweeps": 3})");
  EXPECT_TRUE(sum.sum);
  EXPECT_EQ(sum.sweeps, 3u);
}

TEST(ParsePass, KeepsThePatternsOfTensors) {
  const auto pass = ParsePass(NodeOf(R"({"pass": "half", "tensors": ["a*", "b"]})"));
  ASSERT_TRUE(pass.ok());
  EXPECT_EQ(pass->tensors, (std::vector<std::string>{"a*", "b"}));
}

}  // namespace
}  // namespace kinglet::recipe_pass_test
