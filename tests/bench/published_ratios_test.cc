// Synthesises the coded presets, counts them, and compares with the published ratios.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "runtime/accounting/micronet.h"
#include "tests/synthesis/coded_presets.h"
#include "tests/synthesis/published_totals.h"
#include "tests/synthesis/synthetic_plan.h"
#include "tests/tools/run_command.h"

namespace kinglet::published_ratios_test {
namespace {

using Json = nlohmann::ordered_json;

class PublishedRatios : public testing::Test {
 protected:
  Json Counted(const std::string& preset, const std::string& options) const {
    const Outcome made = folder_.RunShell(std::string(KINGLET_SYNTHESISE) + " --preset " + preset +
                                          " -o m.kgl " + options);
    EXPECT_EQ(made.exit_status, 0) << made.error;
    const Outcome outcome = folder_.Run("count m.kgl --rules micronet-2019 --json");
    EXPECT_EQ(outcome.exit_status, 0) << outcome.error;
    return outcome.exit_status == 0 ? outcome.Json().at(0) : Json();
  }
  CommandFolder folder_;
};

TEST_F(PublishedRatios, OfDifferentiableProductQuantisation) {
  for (const CodedRatioRow& row : kCodedRatios) {
    const Json tables = Counted(row.preset, "")["tables"];
    ASSERT_EQ(tables.size(), 1u) << row.preset;
    const double ratio = tables[0]["ratio_with_bias"], plain = tables[0]["ratio"];
    EXPECT_NEAR(ratio, row.ratio, row.ratio == row.printed ? 0.05 : 0.005) << row.preset;
    EXPECT_NEAR(ratio, row.printed, 0.06) << row.preset;
    // "With plain d the same rows come out 0.05 to 0.5 % lower."
    EXPECT_GT(ratio / plain, 1.0005) << row.preset;
    EXPECT_LT(ratio / plain, 1.0051) << row.preset;
    // The stored size equals the formula's, because all numbers of choices are powers of two.
    EXPECT_NEAR(tables[0]["stored_ratio"].get<double>() / plain, 1, 1e-4) << row.preset;
  }
}

TEST_F(PublishedRatios, OfSlimTables) {
  const Json report = Counted("slim-ptb-300", "");
  ASSERT_EQ(report["tables"].size(), 2u);
  for (const Json& table : report["tables"]) {
    EXPECT_EQ(table["slim_ratio"], 0.2);  // table 1: 20 % of 3.0 million
    EXPECT_EQ(table["codebook_bytes"], 600000 * 4);
  }
}

// The networks are too large to synthesise in a quick test. This one counts plans of their shapes
// with the functions that the command calls.
TEST_F(PublishedRatios, TotalsOfSlimNetworks) {
  for (const SlimTotal& total : kSlimTotals) {
    const SyntheticPlan model(FindCodedPreset(total.preset)->spec);
    const auto count = CountMicronet2019(model.plan(), model.nonzeros, {});
    ASSERT_TRUE(count.ok()) << count.status().message();
    EXPECT_NEAR(static_cast<double>(count->storage.total) / 1e6, total.millions, 0.5)
        << total.preset;
  }
  // Input, output, LSTM layers of 8 H^2 + 4 H, and a bias.
  const CodedSynthesisSpec spec = FindCodedPreset("slim-billion-2")->spec;
  const SyntheticPlan model(spec);
  const uint64_t words = 793471, units = 2048, part = units / 8;
  EXPECT_EQ(CountMicronet2019(model.plan(), model.nonzeros, {})->storage.total,
            (words + 3) / 4 * part + words * part + 2 * (8 * units * units + 4 * units) + words);
}

// Likewise through real files, with 1.4 GB of memory: set KINGLET_BIG_MODELS.
TEST_F(PublishedRatios, TotalsOfSlimFiles) {
  if (std::getenv("KINGLET_BIG_MODELS") == nullptr) GTEST_SKIP() << "KINGLET_BIG_MODELS is not set";
  for (const SlimTotal& total : kSlimTotals) {
    const Json report = Counted(total.preset, "--bits 2");
    EXPECT_NEAR(report["params"]["total"].get<double>() / 1e6, total.millions, 0.5);
    EXPECT_EQ(report["params"]["nonzero"], report["params"]["total"]);
  }
}

}  // namespace
}  // namespace kinglet::published_ratios_test
