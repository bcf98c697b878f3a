#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/session.h"
#include "tests/support/masked_builder.h"
#include "tests/support/transformer_builder.h"
#include "tests/support/translation_builder.h"
#include "tests/tools/run_command.h"

namespace kinglet::bench_test {
namespace {

using Json = nlohmann::ordered_json;

class BenchTest : public testing::Test {
 protected:
  void SetUp() override {
    options_.quantised = true;
    options_.cache_capacity = 4;
    folder_.WriteModel("m.kgl", TinyMicronet(options_));
    std::vector<uint32_t> ids;
    for (uint32_t i = 0; i < 300; ++i) ids.push_back(i * 7 % 23);
    folder_.Write("ids.txt", IdText(ids));
  }
  std::vector<Json> Report(const std::string& arguments) const {
    const Outcome outcome = folder_.Run("bench m.kgl --tokens 30 --json " + arguments);
    EXPECT_EQ(outcome.exit_status, 0) << outcome.error;
    return outcome.Json();
  }
  TinyOptions options_;
  CommandFolder folder_;
};

TEST_F(BenchTest, ALineForEachModeInTheOrderAskedFor) {
  const auto all = Report("--ids ids.txt");
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0]["mode"], "full");
  EXPECT_EQ(all[1]["mode"], "score");
  EXPECT_EQ(all[2]["mode"], "topk");
  const auto some = Report("--ids ids.txt --mode topk,full --top 3");
  ASSERT_EQ(some.size(), 2u);
  EXPECT_EQ(some[0]["mode"], "topk");
  EXPECT_EQ(some[0]["top"], 3);
  EXPECT_EQ(some[1]["mode"], "full");
}

TEST_F(BenchTest, NumbersAreConsistent) {
  for (const std::string arguments : {"--ids ids.txt", "", "--ids ids.txt --lanes 3 --threads 2",
                                      "--backend ref", "--backend ref64 --no-skip"}) {
    for (const Json& line : Report(arguments)) {
      const auto number = [](const Json& value) { return value.get<double>(); };
      const double mean = number(line["us_per_token"]["mean"]);
      double sum = 0;
      for (const Json& step : line["steps"]) sum += number(step["us"]);
      // Nine digits of each number are printed.
      EXPECT_NEAR(sum, mean, 1e-6 * mean + 1e-6) << arguments;
      EXPECT_NEAR(number(line["tokens_per_s"]) * mean, 1e6, 1) << arguments;
      EXPECT_GT(number(line["roofline_us"]), 0);
      EXPECT_GT(number(line["roofline_bytes"]), 0);
      EXPECT_NEAR(
          number(line["ratio"]),
          number(line["us_per_token"]["p50"]) * number(line["lanes"]) / number(line["roofline_us"]),
          1e-6 * number(line["ratio"]));
      EXPECT_GT(number(line["peak_rss_bytes"]), 100000);
      const double tails = number(line["tails_opened"]);
      EXPECT_GE(tails, 0);
      EXPECT_LE(tails, 2);
      const bool all = line["mode"] == "full" || line["no_skip"] == true;
      EXPECT_TRUE(tails == 2 || !all) << tails;
    }
  }
}

TEST_F(BenchTest, TheSameTokensTouchTheSameBytes) {
  for (const std::string arguments : {"--ids ids.txt", ""}) {
    const auto first = Report(arguments), second = Report(arguments);
    for (size_t i = 0; i < first.size(); ++i) {
      EXPECT_EQ(first[i]["roofline_bytes"], second[i]["roofline_bytes"]);
      EXPECT_EQ(first[i]["tails_opened"], second[i]["tails_opened"]);
      for (size_t step = 0; step < first[i]["steps"].size(); ++step) {
        EXPECT_EQ(first[i]["steps"][step]["muls"], second[i]["steps"][step]["muls"]);
        EXPECT_EQ(first[i]["steps"][step]["bytes"], second[i]["steps"][step]["bytes"]);
      }
    }
  }
}

TEST_F(BenchTest, FewIdsAreEnoughIfOneTokenCanBeTimed) {
  // Window 6 and cache 4 are filled; one token is timed, the next asked for.
  folder_.Write("least.txt", "1 2 3 4 5 6 7 8 9 10 11 12");
  EXPECT_EQ(Report("--ids least.txt")[0]["timed"], 1);
  folder_.Write("few.txt", "1 2 3 4 5 6 7 8 9 10 11");
  const Outcome outcome = folder_.Run("bench m.kgl --ids few.txt");
  EXPECT_EQ(outcome.exit_status, 1);
  EXPECT_TRUE(outcome.IsRefusal()) << outcome.error;
  EXPECT_NE(outcome.error.find("few.txt: ids: expected at least 12"), std::string::npos);
}

TEST_F(BenchTest, WhatCannotBeDoneIsRefused) {
  folder_.Write("wild.txt", "1 2 23");
  for (const std::string arguments :
       {"--mode fast", "--mode full,full", "--mode ''", "--mode full,", "--top 0", "--top -1",
        "--lanes 0", "--threads 0", "--tokens 0", "--backend tpu"}) {
    const Outcome outcome = folder_.Run("bench m.kgl " + arguments);
    EXPECT_EQ(outcome.exit_status, 2) << arguments;
    EXPECT_TRUE(outcome.IsRefusal()) << arguments << "\n" << outcome.error;
  }
  for (const std::string arguments :
       {"none.kgl", "m.kgl --ids none.txt", "m.kgl --ids wild.txt", "ids.txt"}) {
    const Outcome outcome = folder_.Run("bench " + arguments);
    EXPECT_EQ(outcome.exit_status, 1) << arguments;
    EXPECT_TRUE(outcome.IsRefusal()) << arguments << "\n" << outcome.error;
  }
}

// Each mode has its own streams; one memory limit applies to all of them together.
TEST_F(BenchTest, ModesShareTheMemoryLimit) {
  options_.cache_capacity = 10000;
  folder_.WriteModel("large.kgl", TinyMicronet(options_));
  const auto model = *Model::Open(folder_.Path("large.kgl"), {});
  const uint64_t fit = Session::LanesThatFit(*model, model->session_memory_limit() / 3);
  ASSERT_LT(fit, 65536u);  // what --lanes takes
  const std::string lanes = std::to_string(fit + 1);
  const Outcome outcome = folder_.Run("bench large.kgl --tokens 20 --threads 2 --lanes " + lanes);
  EXPECT_EQ(outcome.exit_status, 1);
  EXPECT_TRUE(outcome.IsRefusal()) << outcome.error;
  EXPECT_NE(outcome.error.find("at most " + std::to_string(fit) + " lanes"), std::string::npos)
      << outcome.error;
}

TEST_F(BenchTest, MoreWordsThanTheModelHasAreAllOfThem) {
  const auto lines = Report("--mode topk --top 1000");
  EXPECT_EQ(lines[0]["tails_opened"], 2);
}

TEST_F(BenchTest, TextForPeople) {
  const Outcome outcome = folder_.Run("bench m.kgl --tokens 30 --ids ids.txt --steps 3");
  EXPECT_EQ(outcome.exit_status, 0) << outcome.error;
  EXPECT_EQ(outcome.error, "");
  for (const char* expected : {"\nfull ", "\nscore ", "\ntopk 10 ", "roofline us", " more "}) {
    EXPECT_NE(outcome.out.find(expected), std::string::npos) << expected << "\n" << outcome.out;
  }
}

TEST(BenchTranslations, TheSourceIsEncodedApartFromTheNodes) {
  const CommandFolder folder;
  folder.WriteModel("m.kgl", TinyTranslation({.bits = 9, .quantised = true}));
  const auto report = [&](const std::string& arguments) {
    const Outcome outcome = folder.Run("bench m.kgl --tokens 30 --json " + arguments);
    EXPECT_EQ(outcome.exit_status, 0) << outcome.error;
    return outcome.Json();
  };
  for (const std::string lanes : {"", " --lanes 3 --threads 2"}) {
    const auto lines = report("--source-length 5 --target-length 6" + lanes);
    ASSERT_EQ(lines.size(), 3u);
    for (const Json& line : lines) {
      EXPECT_EQ(line["encode"]["source_length"], 5);
      EXPECT_EQ(line["encode"]["target_length"], 6);
      EXPECT_GT(line["encode"]["us_per_source_token"]["p50"].get<double>(), 0);
      EXPECT_EQ(line["timed"], 30);
      double products = 0;
      for (const Json& step : line["steps"]) {
        EXPECT_FALSE(step["name"].get<std::string>().starts_with("encoder")) << step;
        EXPECT_GE(step["muls"].get<double>(), 0);
        products += step["muls"].get<double>();
      }
      EXPECT_GT(products, 0);
    }
  }
  // Without a number, as many tokens as fit; a round is never truncated.
  const Json line = report("--mode score")[0];
  EXPECT_EQ(line["encode"]["source_length"], 7);
  EXPECT_EQ(line["encode"]["target_length"], 9);
  EXPECT_EQ(line["timed"], 36);
  // A node's products equal those that `count` reports.
  const Json count = folder.Run("count m.kgl --lengths 5,6 --json").Json().at(0)["ops"]["muls"];
  double products = 0;
  const Json full = report("--mode full --source-length 5 --target-length 6")[0];
  for (const Json& step : full["steps"]) {
    products += step["muls"].get<double>();
  }
  EXPECT_NEAR(products, count.get<double>(), 1e-4);

  const Outcome text = folder.Run("bench m.kgl --tokens 10 --source-length 2 --target-length 3");
  EXPECT_NE(text.out.find("targets of 3 tokens, sources of 2"), std::string::npos);
  EXPECT_NE(text.out.find("per source token"), std::string::npos);
  folder.Write("ids.txt", "1 2 3\n");
  folder.WriteModel("text.kgl", TinyMicronet());
  for (const std::string arguments :
       {"m.kgl --source-length 0", "m.kgl --source-length 8", "m.kgl --target-length 10",
        "m.kgl --ids ids.txt", "text.kgl --source-length 2", "text.kgl --target-length 2"}) {
    const Outcome outcome = folder.Run("bench " + arguments);
    EXPECT_NE(outcome.exit_status, 0) << arguments;
    EXPECT_TRUE(outcome.IsRefusal()) << arguments << "\n" << outcome.error;
  }
}

TEST(BenchText, AGivenTextIsReadByOneCall) {
  CommandFolder folder;
  folder.WriteModel("m.kgl", TinyMicronet({.quantised = true, .cache_capacity = 7}));
  folder.Write("ids.txt", "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 1 2 3 4 5 6 7 8");
  for (const std::string arguments : {"", " --no-skip --threads 2", " --ids ids.txt"}) {
    const auto lines = folder.Run("bench m.kgl --mode text --rounds 2 --json" + arguments).Json();
    ASSERT_EQ(lines.size(), 1u) << arguments;
    const Json& line = lines[0];
    EXPECT_EQ(line["mode"], "text");
    EXPECT_EQ(line["timed"], 2);
    EXPECT_EQ(line["text_length"], arguments == " --ids ids.txt" ? 2 : 500);
    double sum = 0;
    for (const Json& step : line["steps"]) sum += step["us"].get<double>();
    const double mean = line["us_per_token"]["mean"];
    EXPECT_NEAR(sum, mean, 1e-6 * mean + 1e-6);
    EXPECT_GT(line["roofline_us"].get<double>(), 0);
  }
  for (const std::string arguments : {"--lanes 2", "--mode text,score"}) {
    EXPECT_TRUE(folder.Run("bench m.kgl --mode text " + arguments).IsRefusal()) << arguments;
  }
  folder.WriteModel("t.kgl", TinyTranslation());
  EXPECT_TRUE(folder.Run("bench t.kgl --mode text").IsRefusal());
}

TEST(BenchMasked, WholeTextsAreRead) {
  CommandFolder folder;
  folder.WriteModel("m.kgl", TinyMasked());
  for (const std::string arguments : {"", " --source-length 4 --lanes 2 --threads 2"}) {
    const auto lines = folder.Run("bench m.kgl --rounds 3 --json" + arguments).Json();
    ASSERT_EQ(lines.size(), 1u);
    const Json& line = lines[0];
    EXPECT_EQ(line["mode"], "read");
    EXPECT_EQ(line["text_length"], arguments.empty() ? 9 : 4);
    EXPECT_EQ(line["timed"], 3);
    double sum = 0;
    for (const Json& step : line["steps"]) {
      sum += step["us"].get<double>();
      const std::string name = step["name"];
      EXPECT_TRUE(name == "other" || name == "embed" || name.starts_with("text.")) << name;
    }
    const double mean = line["us_per_token"]["mean"];
    EXPECT_NEAR(sum, mean, 1e-6 * mean + 1e-6);
    EXPECT_GT(line["roofline_bytes"].get<double>(), 4.0 * 2 * 8 * 24);
    const double text_us =
        line["us_per_token"]["p50"].get<double>() * line["text_length"].get<double>();
    EXPECT_NEAR(line["ratio"].get<double>(),
                text_us * line["lanes"].get<double>() / line["roofline_us"].get<double>(),
                1e-6 * line["ratio"].get<double>());
  }
  EXPECT_NE(folder.Run("bench m.kgl --rounds 1").out.find("texts of 9 tokens"), std::string::npos);
  folder.WriteModel("lm.kgl", TinyTransformer());
  for (const std::string arguments :
       {"m.kgl --source-length 10", "m.kgl --source-length 0", "m.kgl --target-length 3",
        "m.kgl --ids m.kgl", "m.kgl --mode full", "lm.kgl --mode read"}) {
    EXPECT_TRUE(folder.Run("bench " + arguments).IsRefusal()) << arguments;
  }
}

}  // namespace
}  // namespace kinglet::bench_test
