#include <gtest/gtest.h>

#include <variant>

#include "tests/tools/run_command.h"

namespace kinglet {
namespace {

using Json = nlohmann::ordered_json;

class CountTest : public testing::Test {
 protected:
  void SetUp() override {
    options_.bits = 9;
    options_.pruned = true;
    options_.cache_capacity = 4;
    folder_.WriteModel("m.kgl", TinyMicronet(options_));
    folder_.Write("ids.txt", "0 1 22 3 1\n");  // bins 0, 0, 2, 1, 0
  }
  Json Report(const std::string& arguments) const {
    const Outcome outcome = folder_.Run("count " + arguments + " --json");
    EXPECT_EQ(outcome.exit_status, 0) << outcome.error;
    EXPECT_EQ(outcome.Lines().size(), 1u);
    return outcome.exit_status == 0 ? outcome.Json().at(0) : Json();
  }
  TinyOptions options_;
  CommandFolder folder_;
};

TEST_F(CountTest, ExecutedIsTheDefaultAndSaysItsBackend) {
  for (const std::string backend : {"ref", "ref64", "cpu"}) {
    const Json report = Report("m.kgl --ids ids.txt --backend " + backend);
    EXPECT_EQ(report["rules"], "executed");
    EXPECT_EQ(report["backend"], backend);
    EXPECT_TRUE(report["score"].is_null());
    EXPECT_EQ(report["params"]["total_size"], folder_.Read("m.kgl").size());
  }
}

TEST_F(CountTest, IdsAreCountedToTheLast) {
  EXPECT_EQ(Report("m.kgl --rules micronet-2019 --ids ids.txt"),
            Report("m.kgl --rules micronet-2019 --bin-counts 3,1,1"));
  EXPECT_NE(Report("m.kgl --rules micronet-2019 --ids ids.txt")["ops"],
            Report("m.kgl --rules micronet-2019 --bin-counts 2,1,1")["ops"]);
}

TEST_F(CountTest, LanesAndThreadsChangeNothing) {
  EXPECT_EQ(Report("m.kgl --ids ids.txt --lanes 3 --threads 2"), Report("m.kgl --ids ids.txt"));
}

// One weight set to zero: one parameter, one product and (n - 1)/n additions less in the notebook;
// the dense plane's products stay, one of them useless.
TEST_F(CountTest, OneWeightLess) {
  ModelDraft draft = TinyMicronet(options_);
  for (EncodedTensor& tensor : draft.tensors) {
    if (tensor.name != "layers.1.fc.0.weight") continue;
    for (int16_t& code : std::get<Quantised>(tensor.values).codes) {
      if (code == 0) continue;
      code = 0;
      break;
    }
  }
  folder_.WriteModel("less.kgl", draft);
  const std::string arguments = ".kgl --bin-counts 3,1,1 --rules ";
  const auto difference = [&](const char* rules, const char* group, const char* key) {
    return Report("m" + arguments + rules)[group][key].get<double>() -
           Report("less" + arguments + rules)[group][key].get<double>();
  };
  EXPECT_EQ(difference("micronet-2019", "params", "nonzero"), 1);
  EXPECT_EQ(difference("micronet-2019", "params", "size"), 9.0 / 32);
  EXPECT_NEAR(difference("micronet-2019", "ops", "muls"), 1, 1e-9);
  EXPECT_NEAR(difference("micronet-2019", "ops", "adds"), 7.0 / 8, 1e-9);
  EXPECT_EQ(difference("executed", "params", "nonzero"), 1);
  EXPECT_EQ(difference("executed", "ops", "muls"), 0);
  EXPECT_NEAR(difference("executed", "ops", "useful_muls"), 1, 1e-9);
}

// Asked for less, a token costs less: one word opens its own cluster at most, the top k those that
// could matter, and looks through those whose best word could.
TEST_F(CountTest, LazyQueriesCountWhatTheyOpened) {
  const auto total = [this](const std::string& arguments) {
    return Report("m.kgl --ids ids.txt " + arguments)["ops"]["total"].get<double>();
  };
  const double full = total(""), score = total("--mode score"), top = total("--mode topk --top 1");
  EXPECT_EQ(full, total("--mode full"));
  EXPECT_LT(score, full);
  EXPECT_LE(top, full * 1.2);  // comparing words and mixing the cache's is not in the formula
  EXPECT_LT(top, total("--mode topk --top 5"));
  for (const std::string arguments :
       {"--mode score", "--mode topk --bin-counts 3,1,1", "--mode none --ids ids.txt",
        "--mode score --ids ids.txt --rules micronet-2019", "--mode score --ids ids.txt --compare",
        "--mode topk --top 0 --ids ids.txt"}) {
    const Outcome outcome = folder_.Run("count m.kgl " + arguments);
    EXPECT_NE(outcome.exit_status, 0) << arguments;
    EXPECT_TRUE(outcome.IsRefusal()) << arguments << "\n" << outcome.error;
  }
  folder_.Write("one.txt", "3\n");
  EXPECT_TRUE(folder_.Run("count m.kgl --mode score --ids one.txt").IsRefusal());
  EXPECT_EQ(folder_.Run("count m.kgl --mode topk --ids one.txt").exit_status, 0);
}

TEST_F(CountTest, FrequenciesAreAskedForWhereTheRulesNeedThem) {
  for (const std::string arguments :
       {"", "--rules micronet-2019", "--compare", "--bin-counts 1,2", "--bin-counts 1,2,3,4",
        "--bin-counts 0,0,0", "--bin-counts 18446744073709551615,18446744073709551615,1",
        "--ids empty.txt", "--ids missing.txt"}) {
    folder_.Write("empty.txt", "\n");
    const Outcome outcome = folder_.Run("count m.kgl " + arguments);
    EXPECT_EQ(outcome.exit_status, 1) << arguments;
    EXPECT_TRUE(outcome.IsRefusal()) << arguments << "\n" << outcome.error;
  }
  options_.bins = 1;
  folder_.WriteModel("one.kgl", TinyMicronet(options_));
  EXPECT_EQ(Report("one.kgl --rules micronet-2019")["rules"], "micronet-2019");
  EXPECT_EQ(Report("one.kgl")["rules"], "executed");
}

TEST_F(CountTest, CompareHasALineForEachComponent) {
  const Outcome outcome = folder_.Run("count m.kgl --ids ids.txt --compare --json");
  EXPECT_EQ(outcome.exit_status, 0) << outcome.error;
  double difference = 0;
  for (const Json& line : outcome.Json()) {
    difference += line["difference"].get<double>();
    EXPECT_EQ(line["why"] == "", line["micronet-2019"] == line["executed"]) << line;
  }
  const auto total = [this](const std::string& rules) {
    const Json ops = Report("m.kgl --ids ids.txt --rules " + rules)["ops"];
    return ops["muls"].get<double>() + ops["adds"].get<double>() + ops["others"].get<double>();
  };
  EXPECT_NEAR(difference, total("executed") - total("micronet-2019"), 1e-6);
}

TEST_F(CountTest, TextForPeople) {
  for (const std::string arguments : {"--rules micronet-2019", "--rules executed", "--compare"}) {
    const Outcome outcome = folder_.Run("count m.kgl --ids ids.txt " + arguments);
    EXPECT_EQ(outcome.exit_status, 0) << outcome.error;
    EXPECT_NE(outcome.out.find("layers.1.attention.query_positions"), std::string::npos);
    EXPECT_NE(outcome.out.find("\ntotal "), std::string::npos) << outcome.out;
  }
}

}  // namespace
}  // namespace kinglet
