#include "converters/convert_options.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/converters/synthetic.h"

namespace kinglet::convert_options_test {
namespace {

class CheckOptionsTest : public testing::Test {
 protected:
  CheckOptionsTest() {
    options_.checkpoint = folder_.Write("model.pth", "");
    options_.output = folder_.Path("model.kgl");
  }
  void ExpectRefused(const std::string& part) const {
    const Status status = CheckOptions(options_);
    EXPECT_EQ(status.code(), KINGLET_INVALID_ARGUMENT) << part;
    EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
  }
  TemporaryFolder folder_;
  ConvertOptions options_;
};

TEST_F(CheckOptionsTest, Plain) { EXPECT_TRUE(CheckOptions(options_).ok()); }

TEST_F(CheckOptionsTest, Everything) {
  options_.bits = 9;
  options_.vocabulary = options_.calibration_text = options_.golden = options_.ids = "x";
  options_.prune = 0.36;
  options_.cache_capacity = 2000;
  options_.cache_theta = 0.5;
  options_.cache_lambda = 0.25;
  EXPECT_TRUE(CheckOptions(options_).ok());
  EXPECT_EQ(ShapingOptions(options_),
            "prune 0.36, bits 9, calibrated, cache 2000, cache theta 0.5, cache lambda 0.25");
  options_ = {};
  options_.memory_length = 640;
  EXPECT_EQ(ShapingOptions(options_), "mem-len 640");
  options_.ignored_options = {"a", "b"};
  EXPECT_EQ(ShapingOptions(options_), "mem-len 640, ignored option a, ignored option b");
  EXPECT_EQ(ShapingOptions({}), "");
  ConvertOptions kept;
  kept.define_cache_rows = 64;
  EXPECT_EQ(ShapingOptions(kept), "DeFINE unit kept, 64 rows cached");
}

TEST_F(CheckOptionsTest, RowsOfAKeptUnit) {
  options_.define_cache_rows = 1;
  EXPECT_TRUE(CheckOptions(options_).ok());
  options_.define_cache_rows = 0;
  ExpectRefused("keep-define: expected 1 to 2147483647 rows, found 0");
}

TEST_F(CheckOptionsTest, Bits) {
  for (const int bits : {-1, 0, 1, 17, 32}) {
    options_.bits = bits;
    ExpectRefused("bits: expected 2 to 16, found " + std::to_string(bits));
  }
}

TEST_F(CheckOptionsTest, CalibrationNeedsBits) {
  options_.calibration_text = "text";
  ExpectRefused("calibrate: expected --bits with it");
  options_.bits = 9;
  EXPECT_TRUE(CheckOptions(options_).ok());
}

TEST_F(CheckOptionsTest, HowWeightsAndActivationsAreQuantised) {
  options_.scale_by = ScaleBy::kLeastSquares;
  ExpectRefused("scale-by: expected --bits with it, found none");
  options_.bits = 4;
  EXPECT_EQ(ShapingOptions(options_), "bits 4, scales by mse");
  for (const bool feedback : {true, false}) {
    options_.round_by = feedback ? RoundBy::kFeedback : RoundBy::kNearest;
    options_.activation_bits = 9;
    ExpectRefused(feedback ? "round-by: expected --calibrate" : "activation-bits: expected --cal");
  }
  options_.activation_bits.reset();
  options_.calibrate_by = RangeRule::By::kLeastSquares;
  ExpectRefused("calibrate-by: expected --calibrate with it, found none");
  options_.calibration_text = "text";
  EXPECT_TRUE(CheckOptions(options_).ok());
  options_.percentile = 99;
  ExpectRefused("percentile: expected --calibrate-by percentile with it, found none");
  options_.calibrate_by = RangeRule::By::kPercentile;
  options_.activation_bits = 17;
  ExpectRefused("activation-bits: expected 2 to 16, found 17");
  options_.activation_bits = 9;
  options_.round_by = RoundBy::kFeedback;
  EXPECT_TRUE(CheckOptions(options_).ok());
  EXPECT_EQ(ShapingOptions(options_),
            "bits 4, scales by mse, rounded by feedback, calibrated, activations of 9 bits, ranges "
            "by percentile 99");
  for (const double percentile : {0.0, -1.0, 100.5, std::nan("")}) {
    options_.percentile = percentile;
    ExpectRefused("percentile: expected above 0, at most 100");
  }
}

TEST_F(CheckOptionsTest, ARecipeNamesItsFamilyItself) {
  options_.recipe = "recipe.json";
  EXPECT_TRUE(CheckOptions(options_).ok());
  options_.family = "awd-lstm";
  ExpectRefused("recipe: expected no --family with it");
}

TEST_F(CheckOptionsTest, OnlyARecipeThatIsNamedIsTrusted) {
  options_.trust_recipe_paths = true;
  ExpectRefused("trust-recipe-paths: expected --recipe with it, found none");
  options_.recipe = "recipe.json";
  EXPECT_TRUE(CheckOptions(options_).ok());
}

TEST_F(CheckOptionsTest, Fractions) {
  for (const double prune : {-0.1, 1.0, 2.0, std::nan("")}) {
    options_.prune = prune;
    ExpectRefused("prune: expected a fraction");
  }
  options_.prune = 0.0;
  EXPECT_TRUE(CheckOptions(options_).ok());
}

TEST_F(CheckOptionsTest, GoldenAndIdsGoTogether) {
  options_.golden = "golden";
  ExpectRefused("found golden values only");
  options_.golden = "";
  options_.ids = "ids";
  ExpectRefused("found ids only");
}

TEST_F(CheckOptionsTest, Tolerance) {
  for (const double tolerance : {-1e-9, std::nan(""), HUGE_VAL}) {
    options_.tolerance = tolerance;
    ExpectRefused("tolerance: expected a number from 0");
  }
}

TEST_F(CheckOptionsTest, CacheNumbers) {
  options_.cache_capacity = 0;
  EXPECT_TRUE(CheckOptions(options_).ok());
  options_.cache_theta = 1;
  ExpectRefused("no theta or lambda");
  options_.cache_capacity = 1048577;
  ExpectRefused("cache: expected at most 1048576, found 1048577");
  options_.cache_capacity = 1;
  for (const double theta : {0.0, -1.0, std::nan(""), HUGE_VAL}) {
    options_.cache_theta = theta;
    ExpectRefused("cache theta");
  }
  options_.cache_theta = 1;
  for (const double lambda : {0.0, 1.0, -1.0, std::nan("")}) {
    options_.cache_lambda = lambda;
    ExpectRefused("cache lambda");
  }
}

TEST_F(CheckOptionsTest, Output) {
  options_.output = "";
  ExpectRefused("output: expected a path");
  options_.output = folder_.path();
  ExpectRefused(", a folder");
  options_.output = "/dev/null";
  ExpectRefused("no regular file");
  options_.output = folder_.Path("./model.pth");
  ExpectRefused("not an input");
  options_.output = folder_.Path("none/model.kgl");
  EXPECT_EQ(CheckOptions(options_).code(), KINGLET_NOT_FOUND);
  options_.output = "model.kgl";  // in the working folder
  EXPECT_TRUE(CheckOptions(options_).ok());
  options_.checkpoint = "";
  ExpectRefused("checkpoint: expected a path");
}

}  // namespace
}  // namespace kinglet::convert_options_test
