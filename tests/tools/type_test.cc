#include <gtest/gtest.h>

#include <string>

#include "tests/tools/run_command.h"

namespace kinglet::type_test {
namespace {

class TypeTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_.WriteModel("m.kgl", TinyMicronet({.cache_capacity = 5}));
    folder_.WriteModel("ids.kgl", TinyMicronet({.vocabulary = false}));
    folder_.Write("text.txt", "the w3 w4 unheard\nw5 the , w19\n");
  }
  CommandFolder folder_;
};

TEST_F(TypeTest, SimulatesAndCompares) {
  folder_.Write("words.arpa",
                "\\data\\\nngram 1=5\nngram 2=1\n\n\\1-grams:\n-1\t<unk>\n-99\t<s>\n-1\t</s>\n"
                "-0.5\tthe\t-0.1\n-0.7\tw3\n\n\\2-grams:\n-0.2\tthe w3\n\n\\end\\\n");
  ASSERT_EQ(folder_.Run("ngram words.arpa -o words.kng").exit_status, 0);
  const Outcome all = folder_.Run(
      "type m.kgl --simulate text.txt --compare text.txt --ngram words.kng --noise 0 --omit 0 "
      "--add 0 --swap 0 --json");
  ASSERT_EQ(all.exit_status, 0) << all.error;
  const auto lines = all.Json();
  ASSERT_EQ(lines.size(), 4u);
  const char* const systems[] = {"network", "nearest keys", "word counts", "n-grams"};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(lines[i]["system"], systems[i]);
    EXPECT_EQ(lines[i]["words"], 6);  // not the unknown one, not the comma
    EXPECT_GE(lines[i]["recall_at_3"].get<double>(), 0.8);
    EXPECT_GE(lines[i]["us_per_key"]["p99"], lines[i]["us_per_key"]["p50"]);
  }
  EXPECT_GT(lines[0]["memory"], 0);
  const Outcome few = folder_.Run("type m.kgl --simulate - --words 2 --seed 7", "the w3 w4");
  EXPECT_EQ(few.exit_status, 0) << few.error;
  EXPECT_EQ(few.Lines().size(), 2u);
  folder_.Write("keys.txt", "the\n w123\n");
  EXPECT_EQ(folder_.Run("type m.kgl --simulate text.txt --layout keys.txt").exit_status, 0);
}

TEST_F(TypeTest, RefusesWhatIsWrong) {
  folder_.Write("bad.txt", "a a\n");
  const std::string long_name(300, 'x');
  for (const char* const use : {"--simulate text.txt", "--tune text.txt", "--list"}) {
    const Outcome outcome = folder_.Run("type m.kgl --user " + long_name + " " + use);
    EXPECT_NE(outcome.exit_status, 0) << use;
    EXPECT_NE(outcome.error.find("kinglet: " + long_name + ": file: "), std::string::npos) << use;
  }
  for (const char* const arguments :
       {"type m.kgl --simulate text.txt --layout bad.txt", "type ids.kgl --simulate text.txt",
        "type m.kgl --simulate missing.txt", "type m.kgl --simulate text.txt --noise -1",
        "type m.kgl --simulate text.txt --omit 2", "type m.kgl --compare text.txt",
        "type m.kgl --simulate text.txt --ngram text.txt"}) {
    const Outcome outcome = folder_.Run(arguments);
    EXPECT_NE(outcome.exit_status, 0) << arguments;
    EXPECT_TRUE(outcome.IsRefusal()) << arguments << ": " << outcome.error;
  }
}

}  // namespace
}  // namespace kinglet::type_test
