#include <gtest/gtest.h>

#include <map>
#include <variant>

#include "tests/support/masked_builder.h"
#include "tests/support/translation_builder.h"
#include "tests/tools/run_command.h"

namespace kinglet::count_test {
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

// One weight set to zero: the notebook counts one parameter, one product and (n - 1)/n additions
// less. The dense product still runs, with one multiplication less that is useful.
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

// Smaller queries cost less: one word opens at most its own cluster; the top k opens only the
// clusters that may contain one of the k best words.
TEST_F(CountTest, LazyQueriesCountWhatTheyOpened) {
  const auto total = [this](const std::string& arguments) {
    return Report("m.kgl --ids ids.txt " + arguments)["ops"]["total"].get<double>();
  };
  const double full = total(""), score = total("--mode score"), top = total("--mode topk --top 1");
  EXPECT_EQ(full, total("--mode full"));
  EXPECT_LT(score, full);
  EXPECT_LE(top, full * 1.2);  // the formula omits comparing words and mixing the cache
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

class CountTranslationsTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_.WriteModel("m.kgl", TinyTranslation({.bits = 9, .quantised = true}));
    folder_.Write("pairs.txt", "1 12 0 ||| 2 5 16 3\n7 ||| 2 4 3\n");
  }
  Json Report(const std::string& arguments) const {
    const Outcome outcome = folder_.Run("count m.kgl " + arguments + " --json");
    EXPECT_EQ(outcome.exit_status, 0) << outcome.error;
    return outcome.exit_status == 0 ? outcome.Json().at(0) : Json();
  }
  CommandFolder folder_;
};

TEST_F(CountTranslationsTest, EncoderAndDecoderHaveTheirOwnTokens) {
  for (const std::string rules : {"executed", "micronet-2019"}) {
    const Json report = Report("--pairs pairs.txt --rules " + rules);
    EXPECT_EQ(report["sentences"], 2);
    EXPECT_EQ(report["source_tokens"], 4);
    EXPECT_EQ(report["target_tokens"], 5);
    EXPECT_TRUE(report["score"].is_null());
    const double source = report["encoder"]["total"], target = report["ops"]["total"];
    EXPECT_NEAR(report["per_sentence"].get<double>(), (4 * source + 5 * target) / 2, 1e-6);
    for (const Json* part : {&report["encoder"], static_cast<const Json*>(&report)}) {
      double products = 0;
      for (const Json& component : (*part)["components"]) {
        products += component["muls"].get<double>();
      }
      const Json& tally = part == &report ? report["ops"] : *part;
      EXPECT_NEAR(products, tally["muls"].get<double>(), 1e-6) << rules;
    }
  }
}

// Two pairs of equal lengths have the same mean as one of them; longer pairs cost more.
TEST_F(CountTranslationsTest, LengthsStandForPairs) {
  folder_.Write("even.txt", "1 2 ||| 2 5 3\n7 9 ||| 2 4 3\n");
  for (const std::string rules : {" --rules executed", " --rules micronet-2019"}) {
    const Json pairs = Report("--pairs even.txt" + rules), one = Report("--lengths 2,2" + rules);
    EXPECT_EQ(pairs["ops"], one["ops"]);
    EXPECT_EQ(pairs["encoder"], one["encoder"]);
    EXPECT_EQ(pairs["per_sentence"], one["per_sentence"]);
    EXPECT_GT(Report("--lengths 3,2" + rules)["encoder"]["total"], one["encoder"]["total"]);
    EXPECT_GT(Report("--lengths 2,3" + rules)["ops"]["total"], one["ops"]["total"]);
  }
  const Json score = Report("--pairs pairs.txt --mode score");
  EXPECT_EQ(score["target_tokens"], 5);
  EXPECT_LT(score["ops"]["total"], Report("--pairs pairs.txt")["ops"]["total"]);
}

TEST_F(CountTranslationsTest, Refusals) {
  folder_.Write("long.txt", "1 2 3 4 5 6 7 8 ||| 2 3\n");
  folder_.Write("foreign.txt", "1 ||| 2 3\n13 ||| 2 3\n");
  folder_.WriteModel("text.kgl", TinyMicronet());
  for (const std::string arguments :
       {"m.kgl", "m.kgl --ids pairs.txt", "m.kgl --bin-counts 1", "m.kgl --pairs none.txt",
        "m.kgl --pairs long.txt", "m.kgl --pairs foreign.txt", "m.kgl --lengths 2",
        "m.kgl --lengths 0,2", "m.kgl --lengths 8,2", "m.kgl --lengths 2,10",
        "m.kgl --lengths 2,9999999999", "m.kgl --lengths 2,x",
        "m.kgl --lengths 2,2 --pairs pairs.txt", "m.kgl --lengths 2,2 --mode score",
        "text.kgl --pairs pairs.txt", "text.kgl --lengths 2,2"}) {
    const Outcome outcome = folder_.Run("count " + arguments);
    EXPECT_NE(outcome.exit_status, 0) << arguments;
    EXPECT_TRUE(outcome.IsRefusal()) << arguments << "\n" << outcome.error;
  }
  EXPECT_NE(folder_.Run("count m.kgl --pairs foreign.txt").error.find("sentence 1: "),
            std::string::npos);
}

TEST_F(CountTranslationsTest, TextForPeople) {
  for (const std::string arguments : {"--rules micronet-2019", "--rules executed", "--compare"}) {
    const Outcome outcome = folder_.Run("count m.kgl --pairs pairs.txt " + arguments);
    EXPECT_EQ(outcome.exit_status, 0) << outcome.error;
    EXPECT_NE(outcome.out.find("source.attention.values"), std::string::npos);
    EXPECT_NE(outcome.out.find("encoder.layers."), std::string::npos);
  }
  const Outcome outcome = folder_.Run("count m.kgl --pairs pairs.txt");
  EXPECT_NE(outcome.out.find("for each of 4 source tokens; 5 target tokens"), std::string::npos)
      << outcome.out;
  double difference = 0;
  for (const Json& line : folder_.Run("count m.kgl --pairs pairs.txt --compare --json").Json()) {
    EXPECT_EQ(line["why"] == "", line["micronet-2019"] == line["executed"]) << line;
    difference += line["difference"].get<double>();
  }
  EXPECT_GT(difference, 0);
}

// Each text is read once, and one word of it is predicted.
TEST(CountMasked, TokensOfTextsAndAnswers) {
  CommandFolder folder;
  folder.WriteModel("m.kgl", TinyMasked());
  folder.Write("ids.txt", "2 9 4 3\n\n2 6 3\n");
  const Json line = folder.Run("count m.kgl --ids ids.txt --json").Json().at(0);
  EXPECT_EQ(line["sentences"], 2);
  EXPECT_EQ(line["source_tokens"], 7);
  EXPECT_EQ(line["target_tokens"], 2);
  std::map<std::string, double> muls;
  for (const Json& component : line["encoder"]["components"]) {
    muls[component["name"]] = component["muls"];
  }
  // Two layers of width 8; three projections of 8 rows; an inner layer.
  EXPECT_EQ(muls["text.layers.0.qkv"], 8 * 24);
  EXPECT_EQ(muls["text.layers.1.out"], 8 * 8);
  EXPECT_EQ(muls["text.layers.1.fc0"], muls["text.layers.1.fc3"]);
  // Each of 4 tokens attends to 4, each of 3 to 3: 2 heads of 4 products each.
  EXPECT_DOUBLE_EQ(muls["text.layers.0.attention.query_keys"], 8 * (16 + 9) / 7.0);
  for (const Json& component : line["components"]) {
    muls[component["name"]] = component["muls"];
  }
  EXPECT_EQ(muls["transform.0"], 8 * 8);
  EXPECT_EQ(muls["pooler"], 8 * 8);
  EXPECT_EQ(muls["softmax.head"], 17 * 8);

  const Json one = folder.Run("count m.kgl --lengths 5 --json").Json().at(0);
  EXPECT_EQ(one["source_tokens"], 5);
  const Outcome text = folder.Run("count m.kgl --lengths 5");
  EXPECT_NE(text.out.find(" operations for each of 5 tokens"), std::string::npos) << text.out;
  folder.WriteModel(
      "s.kgl",
      TinyMasked({.words = false, .pooler = false, .scores = 2, .scored = ScoredPart::kSpans}));
  EXPECT_EQ(folder.Run("count s.kgl --lengths 5 --json").Json().at(0)["target_tokens"], 5);
  folder.Write("long.txt", "2 3\n2 5 5 5 5 5 4 5 5 3\n");
  folder.Write("foreign.txt", "2 17 3\n");
  for (const std::string arguments :
       {"m.kgl", "m.kgl --lengths 5,5", "m.kgl --lengths 10", "m.kgl --lengths 0",
        "m.kgl --pairs ids.txt", "m.kgl --bin-counts 3", "m.kgl --ids long.txt",
        "m.kgl --ids foreign.txt", "m.kgl --lengths 5 --rules micronet-2019",
        "m.kgl --lengths 5 --compare", "m.kgl --ids ids.txt --mode topk"}) {
    EXPECT_TRUE(folder.Run("count " + arguments).IsRefusal()) << arguments;
  }
}

}  // namespace
}  // namespace kinglet::count_test
