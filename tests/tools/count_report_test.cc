#include "tools/count_report.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/synthesis/synthetic_plan.h"

namespace kinglet::count_report_test {
namespace {

using Json = nlohmann::ordered_json;

const std::vector<uint64_t> kTestBins = {198232, 35479, 11858};
const CountBasis kSource = {"ref", "paths of a test", "198232,35479,11858"};

struct Counts {
  MicronetCount micronet;
  ExecutedCount executed;
};

Counts CountsOf(const SyntheticConfig& config, bool pruned) {
  SyntheticPlan model(config);
  if (pruned) {
    for (uint64_t& nonzeros : model.nonzeros) nonzeros -= nonzeros / 3;
  }
  return {
      *CountMicronet2019(model.plan(), model.nonzeros, kTestBins),
      CountExecuted(model.plan(), model.nonzeros, {}, SteadyFullTrace(model.plan(), kTestBins))};
}

SyntheticConfig Quantised() {
  SyntheticConfig config;
  config.bits = 9;
  config.cache = 3000;
  return config;
}

TEST(CountReport, EveryDifferenceHasItsReason) {
  SyntheticConfig config = Quantised();
  for (const int bits : {0, 9}) {
    for (const uint32_t cache : {0u, 3000u}) {
      config.bits = bits;
      config.cache = cache;
      const Counts counts = CountsOf(config, true);
      double difference = 0;
      for (const ComparedComponent& component :
           Compare(counts.micronet.components, counts.executed.components)) {
        const OperationTally &a = component.micronet, &b = component.executed;
        const bool equal = a.multiplications == b.multiplications && a.additions == b.additions &&
                           a.others == b.others;
        EXPECT_EQ(component.why.empty(), equal) << component.name;
        difference += component.Difference();
      }
      EXPECT_NEAR(difference,
                  counts.executed.operations.Total() - counts.micronet.operations.Total(), 1e-3);
    }
  }
}

// In a dense model both rules agree on products with weights, except for the positions of 7 of 8
// heads in 8 layers. They agree on the additions too.
TEST(CountReport, DenseProductsDifferByThePositionsOnly) {
  const Counts counts = CountsOf({}, false);
  double products = 0;
  for (const ComparedComponent& component :
       Compare(counts.micronet.components, counts.executed.components)) {
    const double difference =
        component.executed.multiplications - component.micronet.multiplications;
    if (component.micronet.multiplications > 0) products += difference;
    if (component.name.ends_with(".query_positions")) {
      EXPECT_EQ(difference, 130368 / 8);
    }
  }
  EXPECT_NEAR(products, 130368, 1e-6);
}

// The text report sums the differences, one number for each reason.
TEST(CountReport, DifferencesAreSummedByReason) {
  const Counts counts = CountsOf(Quantised(), true);
  const auto compared = Compare(counts.micronet.components, counts.executed.components);
  OperationTally all;
  std::map<std::string, OperationTally> by_reason;
  for (const DifferenceReason& reason : SumByReason(compared)) {
    EXPECT_TRUE(by_reason.emplace(reason.why, reason.difference).second) << reason.why;
    all += reason.difference;
  }
  const OperationTally positions =
      by_reason["every head multiplies the positions; the notebook counts one head"];
  EXPECT_EQ(positions.multiplications, 130368);
  EXPECT_EQ(positions.additions, 130368);
  const OperationTally zeros = by_reason["dense planes multiply and add zeros too"];
  EXPECT_GT(zeros.multiplications, 1e6);
  const std::string text = CompareText(compared, kSource);
  EXPECT_NE(text.find("         130,368         130,368               0  every head multiplies"),
            std::string::npos)
      << text;
  EXPECT_NEAR(
      all.multiplications,
      counts.executed.operations.multiplications - counts.micronet.operations.multiplications,
      1e-3);
  EXPECT_NEAR(all.additions,
              counts.executed.operations.additions - counts.micronet.operations.additions, 1e-3);
  EXPECT_NEAR(all.others, counts.executed.operations.others - counts.micronet.operations.others,
              1e-3);
  EXPECT_TRUE(SumByReason({}).empty());
}

TEST(CountReport, MicronetJsonHasTheContractsKeys) {
  const Counts counts = CountsOf(Quantised(), false);
  const Json json = Json::parse(MicronetJson(counts.micronet, kSource));
  EXPECT_EQ(json["rules"], "micronet-2019");
  EXPECT_EQ(json["params"]["nonzero"], 8296021);
  EXPECT_EQ(json["params"]["mask"], 259250.65625);
  EXPECT_EQ(json["params"]["quantisation"], 97.96875);
  EXPECT_EQ(json["params"]["total_size"].get<double>(), counts.micronet.storage.TotalSize());
  // Values are exact, not rounded to a float's digits.
  EXPECT_EQ(json["ops"]["muls"].get<double>(), counts.micronet.operations.multiplications);
  EXPECT_EQ(json["ops"]["muls_weighted"].get<double>(),
            counts.micronet.operations.weighted_multiplications);
  EXPECT_EQ(json["ops"]["total"].get<double>(), counts.micronet.operations.WeightedTotal());
  EXPECT_EQ(json["score"].get<double>(), counts.micronet.Score());
  ASSERT_EQ(json["components"].size(), counts.micronet.components.size());
  double multiplications = 0;
  for (const Json& component : json["components"]) {
    multiplications += component["muls"].get<double>();
    EXPECT_EQ(component["density"], 1);
  }
  EXPECT_NEAR(multiplications, json["ops"]["muls"].get<double>(), 1e-3);
}

TEST(CountReport, ExecutedJsonIsInBytesAndHasNoScore) {
  Ledger ledger;
  ledger.entries = {{"", LedgerPart::kFrame, 0, 64},     {"", LedgerPart::kHeader, 64, 36},
                    {"a", LedgerPart::kCodes, 100, 200}, {"a", LedgerPart::kMask, 300, 50},
                    {"a", LedgerPart::kScales, 350, 10}, {"b", LedgerPart::kValues, 360, 40}};
  const Json json = Json::parse(
      ExecutedJson(CountsOf({}, false).executed, ExecutedStorageOf(ledger, 7, 9), kSource));
  EXPECT_EQ(json["rules"], "executed");
  EXPECT_TRUE(json["score"].is_null());
  EXPECT_EQ(json["params"].dump(),
            "{\"nonzero\":7,\"total\":9,\"size\":240,\"mask\":50,\"quantisation\":10,"
            "\"other\":100,\"total_size\":400}");
  EXPECT_EQ(json["backend"], "ref");
  EXPECT_EQ(json["ops"]["total"].get<double>(), json["ops"]["muls"].get<double>() +
                                                    json["ops"]["adds"].get<double>() +
                                                    json["ops"]["others"].get<double>());
}

TEST(CountReport, TextHasALineForEachComponent) {
  const Counts counts = CountsOf({}, false);
  const auto lines = [](const std::string& text) {
    return std::count(text.begin(), text.end(), '\n');
  };
  const auto components = static_cast<std::ptrdiff_t>(counts.micronet.components.size());
  CountBasis all = kSource;
  all.all_layers = true;
  const std::string micronet = MicronetText(counts.micronet, all);
  EXPECT_EQ(lines(micronet), 7 + 3 + components);
  // Without a cache the notebook's softmax counts one addition less.
  EXPECT_NE(micronet.find("              -1  "), std::string::npos) << micronet;
  EXPECT_NE(micronet.find("17,427,387"), std::string::npos) << micronet;
  const std::string executed = ExecutedText(counts.executed, {}, kSource);
  EXPECT_NE(executed.find("paths of a test"), std::string::npos);
  const auto compared = Compare(counts.micronet.components, counts.executed.components);
  const auto reasons = static_cast<std::ptrdiff_t>(SumByReason(compared).size());
  EXPECT_EQ(lines(CompareText(compared, all)),
            3 + 3 + std::ptrdiff_t(compared.size()) + 2 + reasons);
  // Eight equal layers are one row for each component, and a line says so.
  const std::string folded = MicronetText(counts.micronet, kSource);
  EXPECT_NE(folded.find("\nlayers.* x 8: "), std::string::npos) << folded;
  const auto of_layers = std::count_if(
      counts.micronet.components.begin(), counts.micronet.components.end(),
      [](const Component& component) { return component.name.starts_with("layers."); });
  EXPECT_EQ(lines(folded), lines(micronet) + 1 - of_layers * 7 / 8);
  EXPECT_NE(folded.substr(folded.find("\ntotal")), "");
  EXPECT_EQ(folded.substr(folded.find("\ntotal")), micronet.substr(micronet.find("\ntotal")));
  std::istringstream json(CompareJson(compared));
  std::string line;
  for (size_t i = 0; std::getline(json, line); ++i) {
    EXPECT_EQ(Json::parse(line)["name"], compared.at(i).name);
  }
}

// The size includes the codes' words. Tables follow the components in text and in JSON.
TEST(CountReport, CodesAndCodedTables) {
  CodedSynthesisSpec spec;
  spec.vocabulary_size = 32;
  spec.width = 8;
  spec.input = {4, {16}};
  const SyntheticPlan model(spec);
  const MicronetCount count = *CountMicronet2019(model.plan(), model.nonzeros, {});
  CountBasis source = kSource;
  source.tables.push_back({});
  source.tables[0].name = "embed.table";
  source.tables[0].codes_bytes = source.tables[0].codebook_bytes = 64;
  const Json json = Json::parse(MicronetJson(count, source));
  EXPECT_EQ(json["params"]["codes"], 32.0 * 4 * 4 / 32);
  EXPECT_EQ(json["tables"].size(), 1u);
  EXPECT_NE(MicronetText(count, source).find(", codes 16\n"), std::string::npos);
  EXPECT_NE(MicronetText(count, source).find("\nembed.table "), std::string::npos);
  EXPECT_EQ(MicronetText(CountsOf({}, false).micronet, kSource).find("codes"), std::string::npos);
}

}  // namespace
}  // namespace kinglet::count_report_test
