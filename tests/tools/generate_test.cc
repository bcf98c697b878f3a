#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "runtime/generator.h"
#include "tests/tools/run_command.h"

namespace kinglet::generate_test {
namespace {

using Ids = std::vector<uint32_t>;

constexpr uint32_t kUnknown = 2;  // of the tiny models

class GenerateTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_.WriteModel("m.kgl", TinyMicronet({.quantised = true, .cache_capacity = 5}));
  }
  Ids FirstIds(const std::string& arguments) const {
    const auto lines = folder_.Run("generate " + arguments + " --json").Json();
    EXPECT_FALSE(lines.empty()) << arguments;
    return lines.empty() ? Ids() : lines[0]["ids"].get<Ids>();
  }
  CommandFolder folder_;
};

TEST_F(GenerateTest, WritesWhatTheLibraryDraws) {
  const auto model = *Model::Open(folder_.Path("m.kgl"), {});
  for (const uint64_t seed : {uint64_t{0}, uint64_t{7}, UINT64_MAX}) {
    GenerationOptions options;
    options.streams = 3;
    options.tokens = 9;
    options.seed = seed;
    options.draw = {.temperature = 0.8, .top_k = 20, .top_p = 0.9, .excluded = {kUnknown}};
    Generator generator = std::move(*Generator::Create(model, options));
    ASSERT_TRUE(generator.Feed(Ids{0, 3}).ok());
    while (*generator.Next()) {
    }
    const std::string chosen =
        " --streams 3 --tokens 9 --temperature 0.8 --top-k 20 --top-p 0.9 "
        "--no-unk --seed " +
        std::to_string(seed);
    for (const char* threads : {"", " --threads 2"}) {
      const auto lines =
          folder_.Run("generate m.kgl --json --prompt 'the w3'" + chosen + threads).Json();
      ASSERT_EQ(lines.size(), 3u);
      for (size_t i = 0; i < 3; ++i) {
        EXPECT_EQ(lines[i]["stream"], i);
        EXPECT_EQ(lines[i]["ids"].get<Ids>(), generator.streams()[i].ids);
        EXPECT_EQ(lines[i]["text"], generator.streams()[i].text);
      }
    }
    // As text: each stream under its number.
    std::string expected;
    for (size_t i = 0; i < 3; ++i) {
      expected += "== stream " + std::to_string(i) + "\n" + generator.streams()[i].text + "\n";
    }
    EXPECT_EQ(folder_.Run("generate m.kgl --prompt 'the w3'" + chosen).out, expected);
  }
}

TEST_F(GenerateTest, OneSeedIsOneTextOnEveryBackend) {
  const std::string arguments = "generate m.kgl --json --tokens 60 --streams 2 --prompt the";
  const std::string expected = folder_.Run(arguments + " --seed 5 --backend cpu").out;
  EXPECT_EQ(folder_.Run(arguments + " --seed 5 --backend ref").out, expected);
  EXPECT_EQ(folder_.Run(arguments + " --seed 5").out, expected);
  EXPECT_NE(folder_.Run(arguments + " --seed 6").out, expected);
}

// A published network's shapes, 9 bits: every machine generates these words.
TEST_F(GenerateTest, OneSeedIsOneTextOnEveryMachine) {
  const std::string data = KINGLET_TEST_DATA "/micronet-small-9bit-pruned";
  ASSERT_EQ(folder_.Run("convert " + data + " -o q.kgl --vocab " + data + "/vocab.txt").exit_status,
            0);
  EXPECT_EQ(folder_
                .Run("generate q.kgl --prompt 'the war' --seed 20 --tokens 16 --temperature 0.9 "
                     "--top-p 0.9 --no-unk")
                .out,
            " , Canada and likely to have once gave only once not keep as their area of\n");
}

TEST_F(GenerateTest, PromptsAreTextOrIds) {
  folder_.Write("ids.txt", "0 3 1 5\n");
  const Ids expected = FirstIds("m.kgl --ids ids.txt");
  EXPECT_EQ(expected.size(), 100u);
  EXPECT_EQ(FirstIds("m.kgl --prompt 'the w3\nw5'"), expected);  // no end after the last line
  EXPECT_EQ(folder_.Run("generate m.kgl --ids - --json", "0 3 1 5").Json()[0]["ids"], expected);
  EXPECT_NE(FirstIds("m.kgl --prompt 'the w3\nw5\n'"), expected);
  folder_.Write("begin.txt", "1\n");  // <eos>: texts begin after it
  EXPECT_EQ(FirstIds("m.kgl"), FirstIds("m.kgl --ids begin.txt"));
  EXPECT_EQ(FirstIds("m.kgl --prompt ''"), FirstIds("m.kgl --ids begin.txt"));

  TinyOptions options;
  options.vocabulary = false;
  folder_.WriteModel("ids.kgl", TinyMicronet(options));
  const auto lines = folder_.Run("generate ids.kgl --ids ids.txt --tokens 4 --json").Json();
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_FALSE(lines[0].contains("text"));
  std::string ids;
  for (const uint32_t id : lines[0]["ids"].get<Ids>()) {
    ids += (ids.empty() ? "" : " ") + std::to_string(id);
  }
  EXPECT_EQ(folder_.Run("generate ids.kgl --prompt '0 3 1 5' --tokens 4").out, ids + "\n");
  for (const char* arguments : {"--stop x --prompt 3", "--no-unk --prompt 3", "", "--prompt the",
                                "--prompt 23", "--prompt -1"}) {
    const Outcome refused = folder_.Run(std::string("generate ids.kgl ") + arguments);
    EXPECT_EQ(refused.exit_status, 1) << arguments;
    EXPECT_TRUE(refused.IsRefusal()) << refused.error;
  }
}

TEST_F(GenerateTest, OptionsChooseAmongTheWords) {
  // The most probable word, whatever the seed.
  const auto top = folder_.Run("predict m.kgl --json --top 2", "the w3").Json().back()["top"];
  for (const char* seed : {"0", "18446744073709551615"}) {
    for (const char* options : {"--temperature 0", "--top-k 1", "--top-p 1e-12"}) {
      const Ids ids =
          FirstIds(std::string("m.kgl --prompt 'the w3' --seed ") + seed + " " + options);
      EXPECT_EQ(ids[0], top[0]["id"]) << options;
    }
  }
  EXPECT_EQ(FirstIds("m.kgl --top-k 0 --top-p 1"), FirstIds("m.kgl"));
  EXPECT_EQ(FirstIds("m.kgl --top-k 4294967295"), FirstIds("m.kgl"));
  const Ids all = FirstIds("m.kgl --tokens 300");
  EXPECT_GT(std::count(all.begin(), all.end(), kUnknown), 0);
  const Ids known = FirstIds("m.kgl --tokens 300 --no-unk");
  EXPECT_EQ(known.size(), 300u);
  EXPECT_EQ(std::count(known.begin(), known.end(), kUnknown), 0);
}

TEST_F(GenerateTest, StopsBeforeAText) {
  const std::string text = folder_.Run("generate m.kgl --tokens 50 --json").Json()[0]["text"];
  for (const std::string& stop : {std::string("\n"), std::string("w1"), std::string("k> <un")}) {
    const size_t found = text.find(stop);
    const auto stopped =
        folder_.Run("generate m.kgl --tokens 50 --json --stop '" + stop + "'").Json();
    EXPECT_EQ(stopped[0]["text"], text.substr(0, found)) << stop;
    EXPECT_EQ(folder_.Run("generate m.kgl --tokens 50 --stop '" + stop + "'").out,
              text.substr(0, found) + "\n");
  }
}

TEST_F(GenerateTest, WordsThatAreNotUtf8) {
  ModelDraft draft = TinyMicronet({.quantised = true});
  for (size_t i = 3; i < draft.vocabulary.size(); ++i) {
    draft.vocabulary[i] = "\xFF" + std::to_string(i);
  }
  folder_.WriteModel("bytes.kgl", draft);
  const auto line = folder_.Run("generate bytes.kgl --json --tokens 40 --no-unk").Json()[0];
  EXPECT_EQ(line["bytes"], true);
  EXPECT_NE(folder_.Run("generate bytes.kgl --tokens 40 --no-unk").out.find('\xFF'),
            std::string::npos);
}

}  // namespace
}  // namespace kinglet::generate_test
