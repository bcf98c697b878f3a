#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "runtime/translation.h"
#include "tests/support/translation_builder.h"
#include "tests/tools/run_command.h"

namespace kinglet::translate_test {
namespace {

const std::vector<std::vector<uint32_t>> kSources = {{1, 12, 0}, {}, {7}};

class TranslateTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_.WriteModel("m.kgl", TinyTranslation());
    folder_.Write("ids.txt", "1 12 0\n\n7\n");
  }
  // The library's own answer.
  std::vector<Translation> Best(uint32_t beam, double length_penalty = 0) const {
    ModelOptions options;
    options.backend = "ref";
    const auto model = *Model::Open(folder_.Path("m.kgl"), options);
    const auto session = *Session::Create(model, {.lanes = beam});
    std::vector<Translation> best;
    for (const auto& source : kSources) {
      if (source.empty()) {
        best.emplace_back();
      } else {
        best.push_back(Translate(source, {3, 8, length_penalty}, *session)->front());
      }
    }
    return best;
  }
  CommandFolder folder_;
};

TEST_F(TranslateTest, IdsLineByLine) {
  for (const uint32_t beam : {1u, 4u}) {
    std::string expected;
    for (const Translation& translation : Best(beam)) {
      std::string line;
      for (const uint32_t id : translation.ids) {
        line += (line.empty() ? "" : " ") + std::to_string(id);
      }
      expected += line + "\n";
    }
    const Outcome outcome = folder_.Run(
        "translate m.kgl --ids ids.txt --max-length 8 --backend ref"
        " --beam " +
        std::to_string(beam));
    EXPECT_EQ(outcome.exit_status, 0) << outcome.error;
    EXPECT_EQ(outcome.out, expected);
  }
}

TEST_F(TranslateTest, WordsOfStandardInputAndOfAFile) {
  std::string expected;
  for (const Translation& translation : Best(1)) {
    std::string line;
    for (const uint32_t id : translation.ids) {
      line += (line.empty() ? "" : " ") + (id == 2 ? "<s>" : "t" + std::to_string(id));
    }
    expected += line + "\n";
  }
  const std::string text = "s1 s12 s0\n\n s7";
  folder_.Write("source.txt", text);
  for (const char* form : {" < source.txt", " --text source.txt", " --text - < source.txt"}) {
    const Outcome outcome =
        folder_.Run("translate m.kgl --max-length 8 --backend ref" + std::string(form));
    EXPECT_EQ(outcome.out, expected) << form << outcome.error;
  }
}

TEST_F(TranslateTest, Json) {
  const auto best = Best(2, 0.7);
  const auto lines = folder_
                         .Run(
                             "translate m.kgl --ids ids.txt --max-length 8 --beam 2 --json "
                             "--length-penalty 0.7 --backend ref")
                         .Json();
  ASSERT_EQ(lines.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(lines[i]["sentence"], i);
    ASSERT_EQ(lines[i]["target"].size(), best[i].ids.size());
    for (size_t t = 0; t < best[i].ids.size(); ++t) {
      EXPECT_EQ(lines[i]["target"][t]["id"], best[i].ids[t]);
      EXPECT_TRUE(lines[i]["target"][t]["token"].is_string());
    }
    EXPECT_NEAR(lines[i]["logprob"].get<double>(), best[i].log_probability, 1e-6);
    EXPECT_NEAR(lines[i]["score"].get<double>(), best[i].score, 1e-6);
  }
  EXPECT_EQ(lines[1]["finished"], true);
  EXPECT_EQ(lines[0]["finished"], best[0].finished);
}

TEST_F(TranslateTest, LanesAndThreadsChangeNothing) {
  std::string ids;
  for (int i = 0; i < 23; ++i) {
    ids += std::to_string(i % 13) + (i % 4 == 0 ? "" : " " + std::to_string(i * 5 % 13)) + "\n";
    if (i == 7) ids += "\n";
  }
  folder_.Write("many.txt", ids);
  for (const std::string more : {"", " --beam 3 --n-best 2 --json", " --backend ref --json"}) {
    const std::string command = "translate m.kgl --ids many.txt --max-length 8" + more;
    const Outcome one = folder_.Run(command);
    EXPECT_EQ(one.exit_status, 0) << one.error;
    for (const char* lanes : {" --lanes 2", " --lanes 5 --threads 2", " --lanes 64"}) {
      EXPECT_EQ(folder_.Run(command + lanes).out, one.out) << more << lanes;
    }
  }
  folder_.Write("wrong.txt", "1\n2\n99\n3\n");
  const std::string wrong = "translate m.kgl --ids wrong.txt --max-length 8";
  const Outcome one = folder_.Run(wrong), four = folder_.Run(wrong + " --lanes 4");
  EXPECT_EQ(one.exit_status, 1);
  EXPECT_EQ(four.out, one.out);
  EXPECT_EQ(four.error, one.error);
}

TEST_F(TranslateTest, TheFormOfTheLengthPenalty) {
  const std::string command = "translate m.kgl --ids ids.txt --max-length 8 --json ";
  const auto power = folder_.Run(command + "--length-penalty 0.7").Json();
  const auto gnmt = folder_.Run(command + "--length-penalty 0.7 --length-penalty-form gnmt").Json();
  ASSERT_EQ(gnmt.size(), 3u);
  for (const size_t i : {0, 2}) {  // greedy: the translations are the same
    const auto n = static_cast<double>(gnmt[i]["target"].size() + (gnmt[i]["finished"] ? 1 : 0));
    const double logprob = gnmt[i]["logprob"];
    EXPECT_NEAR(power[i]["score"], logprob / std::pow(n, 0.7), 1e-6);
    EXPECT_NEAR(gnmt[i]["score"], logprob / std::pow((5 + n) / 6, 0.7), 1e-6);
  }
}

TEST_F(TranslateTest, BleuOfTheBestTranslations) {
  folder_.Write("source.txt", "s1 s12 s0\n\ns7\n");
  const std::string command = "translate m.kgl --text source.txt --max-length 8 --beam 2 ";
  const std::string own = folder_.Run(command).out;
  folder_.Write("own.txt", own);
  const std::string first = own.substr(0, own.find('\n'));
  folder_.Write("other.txt", first + " t9\n\nt5 t5\n");
  const auto same = folder_.Run(command + "--json --references own.txt").Json();
  ASSERT_EQ(same.size(), 4u);
  EXPECT_EQ(same[3]["sentences"], 3);
  EXPECT_EQ(same[3]["bleu"], 100.0);
  EXPECT_EQ(same[3]["signature"], "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp");
  const Outcome text = folder_.Run(command + "--n-best 2 --references other.txt");
  EXPECT_TRUE(text.out.starts_with(first + "\n")) << text.out;
  EXPECT_TRUE(text.error.starts_with("kinglet: BLEU ")) << text.error;
  EXPECT_NE(text.error.find("nrefs:1|"), std::string::npos);
  const auto of_ids = folder_.Run("translate m.kgl --ids ids.txt --max-length 8 > ids.out; true");
  EXPECT_EQ(folder_.Run("translate m.kgl --ids ids.txt --max-length 8 --json --references ids.out")
                .Json()
                .back()["bleu"],
            100.0);
  for (const char* wrong : {"t1\n", "t1\n\nt2\nt3\n"}) {
    folder_.Write("wrong.txt", wrong);
    const Outcome refused = folder_.Run(command + "--references wrong.txt");
    EXPECT_EQ(refused.exit_status, 1);
    EXPECT_NE(refused.error.find("wrong.txt: expected a line for each line of the source, found "),
              std::string::npos)
        << refused.error;
  }
  EXPECT_EQ(folder_.Run(command + "--references missing.txt").exit_status, 1);
}

// Several translations of a line, and one of a line without words.
TEST_F(TranslateTest, TheBestOfEachLine) {
  const std::string command = "translate m.kgl --ids ids.txt --max-length 8 --beam 4 --n-best 3";
  const Outcome text = folder_.Run(command);
  const auto lines = folder_.Run(command + " --json").Json();
  ASSERT_EQ(lines.size(), 7u) << text.error;
  EXPECT_EQ(std::count(text.out.begin(), text.out.end(), '\n'), 7);
  uint64_t line = 0, rank = 0;
  double before = 0;
  for (const auto& one : lines) {
    if (one["line"] != line) {
      line = one["line"];
      rank = 0;
      before = 0;
    }
    EXPECT_EQ(one["rank"], ++rank);
    EXPECT_LE(one["logprob"].get<double>(), before);
    before = one["logprob"];
    EXPECT_EQ(one["ids"].empty(), line == 2);
    EXPECT_FALSE(one.contains("text"));
  }
  EXPECT_EQ(line, 3u);
  const auto words = folder_.Run("translate m.kgl --max-length 8 --n-best 1 --json", "s1 s12\n");
  EXPECT_TRUE(words.Json()[0]["text"].is_string());
}

TEST_F(TranslateTest, Refusals) {
  const auto refused = [&](const std::string& arguments, int exit_status,
                           const std::string& message) {
    const Outcome outcome = folder_.Run(arguments);
    EXPECT_EQ(outcome.exit_status, exit_status) << arguments;
    EXPECT_NE(outcome.error.find(message), std::string::npos) << outcome.error;
  };
  folder_.WriteModel("lm.kgl", TinyMicronet());
  folder_.WriteModel("ids.kgl", TinyTranslation({.vocabulary = false}));
  folder_.Write("long.txt", "1 1 1 1 1 1 1 1\n");
  folder_.Write("wrong.txt", "1\n13\n");
  refused("translate m.kgl --ids ids.txt --text ids.txt", 2, "both files");
  refused("translate m.kgl --beam 0", 2, "--beam");
  refused("translate m.kgl --beam 2 --n-best 3", 2, "--n-best: expected at most --beam, 2");
  refused("translate lm.kgl --ids ids.txt", 1, "a model with an encoder");
  refused("translate ids.kgl --ids ids.txt", 1, "a word </s>");
  refused("translate m.kgl --ids long.txt --max-length 8", 1, "sentence 0: ");
  refused("translate m.kgl --ids wrong.txt --max-length 8", 1, "sentence 1: ");
  refused("translate m.kgl --ids ids.txt", 1, "the decoder's 9");  // of 100 by default
  refused("translate m.kgl --text ids.txt", 1,
          "expected a word of the vocabulary, which has no <unk>");
}

// Subcommands that read texts refuse a model that needs pairs.
TEST_F(TranslateTest, OtherCommands) {
  for (const char* command : {"score m.kgl --ids ids.txt", "predict m.kgl --ids ids.txt"}) {
    const Outcome outcome = folder_.Run(command);
    EXPECT_EQ(outcome.exit_status, 1) << command;
    EXPECT_NE(outcome.error.find("expected a language model, found one with an encoder"),
              std::string::npos)
        << command << outcome.error;
  }
  EXPECT_EQ(folder_.Run("verify m.kgl").exit_status, 0);
  const auto facts = folder_.Run("inspect m.kgl --json").Json()[0];
  bool encoder = false;
  for (const auto& block : facts["blocks"])
    encoder = encoder || block["block"] == "transformer_encoder";
  EXPECT_TRUE(encoder) << facts["blocks"];
  EXPECT_NE(folder_.Run("inspect m.kgl").out.find("transformer encoder 13 words, 2 layers"),
            std::string::npos);
}

}  // namespace
}  // namespace kinglet::translate_test
