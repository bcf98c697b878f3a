#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/session.h"
#include "tests/support/translation_builder.h"
#include "tests/tools/run_command.h"

namespace kinglet::score_pairs_test {
namespace {

class ScorePairsTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_.WriteModel("m.kgl", TinyTranslation());
    folder_.Write("pairs.txt", "1 12 0 ||| 2 5 16 3\n7 ||| 2 3\n");
  }
  CommandFolder folder_;
};

TEST_F(ScorePairsTest, QuantisedModelsHaveTheSameBitsOnEveryBackend) {
  folder_.WriteModel("q.kgl", TinyTranslation({.bits = 9, .quantised = true}));
  for (const std::string form : {" --hex", " --hex --json"}) {
    std::vector<std::vector<std::string>> outputs;
    for (const std::string backend : {"ref", "cpu", "cpu --lanes 3 --threads 2"}) {
      std::vector<std::string> lines =
          folder_.Run("score q.kgl --pairs pairs.txt" + form + " --backend " + backend).Lines();
      ASSERT_GT(lines.size(), 4u);
      lines.resize(4);  // the tokens
      outputs.push_back(lines);
    }
    EXPECT_EQ(outputs[1], outputs[0]);
    EXPECT_EQ(outputs[2], outputs[0]);
  }
  const auto line =
      folder_.Run("score q.kgl --pairs pairs.txt --hex --json --backend ref").Json()[0];
  const auto bits = static_cast<uint32_t>(std::stoul(line["hex"].get<std::string>(), nullptr, 16));
  EXPECT_NEAR(std::bit_cast<float>(bits), line["logprob"].get<double>(), 1e-7);
}

TEST_F(ScorePairsTest, RanksAndIntervalsAreThoseOfTheTargetsWords) {
  const std::vector<std::vector<uint32_t>> sources = {{1, 12, 0}, {7}}, targets = {{5, 16, 3}, {3}};
  const auto session = *Session::Create(*Model::Open(folder_.Path("m.kgl"), {}));
  const auto lines =
      folder_.Run("score m.kgl --pairs pairs.txt --rank --interval --json --lanes 2").Json();
  size_t at = 0;
  for (size_t i = 0; i < sources.size(); ++i) {
    ASSERT_TRUE(session->Encode(sources[i]).ok());
    uint32_t fed = 2;
    for (const uint32_t id : targets[i]) {
      ASSERT_TRUE(session->StepToken(fed).ok());
      const auto& line = lines.at(at++);
      EXPECT_EQ(line["rank"], *session->Rank(id));
      EXPECT_EQ(line["interval"][0], session->IntervalOf(id)->low);
      EXPECT_EQ(line["interval"][1], session->IntervalOf(id)->high);
      fed = id;
    }
  }
}

TEST_F(ScorePairsTest, WhatTheLibraryComputes) {
  const std::vector<std::vector<uint32_t>> sources = {{1, 12, 0}, {7}}, targets = {{5, 16, 3}, {3}};
  ModelOptions options;
  options.backend = "ref";
  const auto session = *Session::Create(*Model::Open(folder_.Path("m.kgl"), options));
  for (const char* lanes : {"", " --lanes 3 --threads 2"}) {
    const auto lines =
        folder_.Run("score m.kgl --pairs pairs.txt --json --backend ref" + std::string(lanes))
            .Json();
    ASSERT_EQ(lines.size(), 5u);
    double sum = 0;
    size_t line = 0;
    for (size_t i = 0; i < 2; ++i) {
      ASSERT_TRUE(session->Encode(sources[i]).ok());
      uint32_t fed = 2;
      for (size_t t = 0; t < targets[i].size(); ++t) {
        ASSERT_TRUE(session->StepToken(fed).ok());
        fed = targets[i][t];
        const double expected = *session->LogProbability(fed);
        EXPECT_EQ(lines[line]["sentence"], i);
        EXPECT_EQ(lines[line]["pos"], t);
        EXPECT_EQ(lines[line]["id"], fed);
        EXPECT_EQ(lines[line]["token"], fed == 3 ? "</s>" : "t" + std::to_string(fed));
        EXPECT_NEAR(lines[line]["logprob"].get<double>(), expected, 1e-7);
        sum -= expected;
        ++line;
      }
    }
    EXPECT_EQ(lines[4]["sentences"], 2);
    EXPECT_EQ(lines[4]["tokens"], 6);
    EXPECT_EQ(lines[4]["scored"], 4);
    EXPECT_NEAR(lines[4]["nll"].get<double>(), sum / 4, 1e-7);
    EXPECT_NEAR(lines[4]["ppl"].get<double>(), std::exp(sum / 4), 1e-6);
    EXPECT_EQ(lines[4]["oov"], 0);
    EXPECT_EQ(lines[4]["ppl_without_oov"], lines[4]["ppl"]);
    EXPECT_NE(lines[4]["protocol"].get<std::string>().find("start token 2 unscored"),
              std::string::npos);
  }
}

TEST_F(ScorePairsTest, TextSaysTheSame) {
  const Outcome summary = folder_.Run("score m.kgl --pairs pairs.txt");
  EXPECT_EQ(summary.Lines().size(), 7u) << summary.out;
  EXPECT_EQ(folder_.Run("score m.kgl --pairs pairs.txt --tokens").Lines().size(), 11u);
}

TEST_F(ScorePairsTest, Refusals) {
  const auto refused = [&](const std::string& arguments, int exit_status,
                           const std::string& message) {
    const Outcome outcome = folder_.Run(arguments);
    EXPECT_EQ(outcome.exit_status, exit_status) << arguments;
    EXPECT_NE(outcome.error.find(message), std::string::npos) << outcome.error;
  };
  folder_.WriteModel("lm.kgl", TinyMicronet());
  folder_.Write("wrong.txt", "1 ||| 2 3\n13 ||| 2 3\n");
  folder_.Write("unstarted.txt", "1 ||| 5 3\n");
  refused("score lm.kgl --pairs pairs.txt", 1, "--pairs: expected a model with an encoder");
  refused("score m.kgl --pairs wrong.txt", 1, "sentence 1: pairs: source: expected ids below 13");
  refused("score m.kgl --pairs unstarted.txt", 1, "line 1: expected a target that begins with");
  folder_.Write("long.txt", "1 ||| 2 5 5 5 5 5 5 5 5 5 3\n");
  refused("score m.kgl --pairs long.txt", 1, "at most the decoder's 9 positions, found 10");
  refused("score m.kgl --pairs pairs.txt --ids pairs.txt", 2, "found several");
  refused("score m.kgl --pairs pairs.txt --block 3", 2, "no --block with it, found 3");
  refused("score m.kgl", 2, "--pairs FILE, found none of them");
}

}  // namespace
}  // namespace kinglet::score_pairs_test
