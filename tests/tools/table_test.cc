// kinglet table: each column is that of another command, and every form has the same figures.
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/masked_builder.h"
#include "tests/support/model_builder.h"
#include "tests/support/recurrent_builder.h"
#include "tests/support/translation_builder.h"
#include "tests/tools/run_command.h"

namespace kinglet::table_test {
namespace {

using Json = nlohmann::ordered_json;

class TableTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_.WriteModel("a.kgl", TinyMicronet({.quantised = true, .pruned = true}));
    folder_.WriteModel("b.kgl", TinyMicronet({.cache_capacity = 8, .seed = 2}));
    folder_.Write("valid.txt",
                  "the w3 w4 w3 w12\nthe w5 w20 the w6\nw7 unheard w9 w3\nw21 w8 the w4\n");
    folder_.Write("test.txt", "w3 w4 the\nw9 w9 w22\n");
  }
  Outcome Run(const std::string& arguments) const {
    const Outcome outcome = folder_.Run("table --tokens 20 " + arguments);
    EXPECT_EQ(outcome.exit_status, 0) << arguments << "\n" << outcome.error;
    return outcome;
  }
  Json Last(const std::string& arguments) const { return folder_.Run(arguments).Json().back(); }
  void ExpectRefused(const std::string& arguments, const std::string& part, int status = 1) const {
    const Outcome outcome = folder_.Run("table --tokens 20 " + arguments);
    EXPECT_EQ(outcome.exit_status, status) << arguments;
    EXPECT_TRUE(outcome.IsRefusal()) << arguments << "\n" << outcome.error << outcome.out;
    EXPECT_NE(outcome.error.find(part), std::string::npos) << outcome.error;
  }
  static bool Has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  }
  CommandFolder folder_;
};

void ExpectNear(const Json& found, const Json& expected) {
  ASSERT_TRUE(found.is_number() && expected.is_number()) << found << " " << expected;
  EXPECT_NEAR(found, expected, 1e-7 * std::fabs(expected.get<double>()));
}

// The ids of a text of words, which the tiny vocabulary numbers.
std::string Ids(const std::string& text) {
  std::istringstream lines(text);
  std::string ids;
  for (std::string line, word; std::getline(lines, line); ids += "1 ") {
    std::istringstream words(line);
    while (words >> word) {
      ids += (word == "the" ? "0" : word == "unheard" ? "2" : word.substr(1)) + " ";
    }
  }
  return ids;
}

TEST_F(TableTest, ColumnsAreThoseOfOtherCommands) {
  folder_.Write("ids.txt", Ids(folder_.Read("valid.txt")));
  const auto rows = Run("a.kgl b.kgl --text valid.txt --test test.txt --format json").Json();
  ASSERT_EQ(rows.size(), 2u);
  for (const Json& row : rows) {
    const std::string model = row["model"];
    ExpectNear(row["ppl"], Last("score " + model + " --text valid.txt --json")["ppl"]);
    ExpectNear(row["test_ppl"], Last("score " + model + " --text test.txt --json")["ppl"]);
    const Json executed = Last("count " + model + " --ids ids.txt --json");
    EXPECT_EQ(row["parameters"], executed["params"]["total"]);
    EXPECT_EQ(row["parameters"], Last("inspect " + model + " --json")["parameters"]);
    EXPECT_EQ(row["bytes"], executed["params"]["total_size"]);
    EXPECT_EQ(row["bytes"], folder_.Read(model).size());
    const Json counted = Last("count " + model + " --rules micronet-2019 --ids ids.txt --json");
    ExpectNear(row["words"], counted["params"]["total_size"]);
    ExpectNear(row["operations"], counted["ops"]["total"]);
    ExpectNear(row["score"], counted["score"]);
    EXPECT_GT(row["us_per_token"], 0);
    EXPECT_EQ(row["per"], "token");
  }
  EXPECT_EQ(rows[0]["model"], "a.kgl");
  const Outcome json = Run("a.kgl --text valid.txt --json");
  EXPECT_TRUE(json.Json()[0]["test_ppl"].is_null());
  EXPECT_EQ(json.error, "");
}

TEST_F(TableTest, FormsHaveTheSameFigures) {
  const std::string text = " --text valid.txt --test test.txt";
  const Json row = Run("a.kgl" + text + " --json").Json()[0];
  const std::string csv = Run("a.kgl" + text + " --format csv").out;
  EXPECT_TRUE(csv.starts_with(
      "model,parameters,words,operations,bytes,ppl,test_ppl,us_per_token,score\na.kgl,"))
      << csv;
  const std::string figures = row["parameters"].dump() + "," + row["words"].dump();
  EXPECT_TRUE(Has(csv, figures)) << csv << figures;
  const std::string markdown = Run("a.kgl b.kgl" + text).out;
  std::istringstream lines(markdown);
  std::vector<std::string> all;
  for (std::string line; std::getline(lines, line);) all.push_back(line);
  ASSERT_EQ(all.size(), 4u) << markdown;
  EXPECT_EQ(all[1], "|---|---:|---:|---:|---:|---:|---:|---:|---:|");
  char ppl[40];
  std::snprintf(ppl, sizeof(ppl), "| %.5g |", row["ppl"].get<double>());
  EXPECT_TRUE(Has(all[2], ppl)) << all[2] << ppl;
  EXPECT_FALSE(Has(Run("a.kgl --text valid.txt").out, "test perplexity"));
  const std::string latex = Run("a.kgl b.kgl --text valid.txt --format latex").out;
  EXPECT_TRUE(latex.starts_with("\\begin{tabular}{lrrrrrrr}\n\\hline\nmodel & ")) << latex;
  EXPECT_TRUE(latex.ends_with(" \\\\\n\\hline\n\\end{tabular}\n")) << latex;
}

TEST_F(TableTest, NamesAreEscaped) {
  const std::string name = "a_1|\"x,y\"~.kgl";
  folder_.WriteModel(name, TinyMicronet());
  const std::string tail = "'" + name + "' --text valid.txt --format ";
  EXPECT_TRUE(Has(Run(tail + "csv").out, "\n\"a_1|\"\"x,y\"\"~.kgl\","));
  EXPECT_TRUE(Has(Run(tail + "markdown").out, "| a_1\\|\"x,y\"~.kgl |"));
  EXPECT_TRUE(Has(Run(tail + "latex").out, "a\\_1|\"x,y\"\\textasciitilde{}.kgl & "));
}

TEST_F(TableTest, AFigureThatCannotBeHadIsEmptyAndANoteSaysWhy) {
  folder_.WriteModel("ids.kgl", TinyMicronet({.vocabulary = false}));
  folder_.WriteModel("translation.kgl", TinyTranslation());
  folder_.WriteModel("masked.kgl", TinyMasked({}));
  const std::string models = "a.kgl ids.kgl translation.kgl masked.kgl --text valid.txt ";
  const Outcome json = Run(models + "--format json");
  const auto rows = json.Json();
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_TRUE(rows[0]["score"].is_number());
  EXPECT_TRUE(rows[1]["ppl"].is_null() && rows[1]["score"].is_null());
  EXPECT_TRUE(rows[1]["us_per_token"].is_number());
  for (const size_t i : {2, 3}) {
    EXPECT_TRUE(rows[i]["parameters"].is_number() && rows[i]["bytes"].is_number());
    for (const char* key : {"words", "operations", "ppl", "test_ppl", "us_per_token", "score"}) {
      EXPECT_TRUE(rows[i][key].is_null()) << key;
    }
  }
  for (const char* note : {"kinglet: ids.kgl: ppl: valid.txt: words: expected a model with a voc",
                           "kinglet: ids.kgl: words, operations, score: micronet-2019: bin freq",
                           "kinglet: translation.kgl: ppl, us_per_token, words, operations, score",
                           "kinglet: masked.kgl: ppl, us_per_token, words, operations, score: "}) {
    EXPECT_TRUE(Has(json.error, note)) << note << "\n" << json.error;
  }
  const std::string markdown = Run(models).out;
  EXPECT_TRUE(Has(markdown, "|  |\n\nids.kgl: ppl: valid.txt: ")) << markdown;
  EXPECT_TRUE(Run(models + "--format latex").out.starts_with("% ids.kgl: ppl: "));
}

TEST_F(TableTest, OtherVocabulariesArePerWord) {
  folder_.WriteModel("small.kgl", TinyMicronet({.vocabulary_size = 12}));
  const Outcome json = Run("a.kgl small.kgl --text valid.txt --json");
  for (const Json& row : json.Json()) {
    EXPECT_EQ(row["per"], "word");
    const std::string model = row["model"];
    ExpectNear(row["ppl"], Last("score " + model + " --text valid.txt --json")["ppl_per_word"]);
  }
  EXPECT_TRUE(Has(json.error,
                  "perplexities are per word, since the models' vocabularies differ; unknown "
                  "words, which count as one word each: 1 of 21 by a.kgl, 4 of 21 by small.kgl"))
      << json.error;
  EXPECT_TRUE(Has(Run("a.kgl small.kgl --text valid.txt").out, "| perplexity per word |"));
}

TEST_F(TableTest, ThePlotHasEachModel) {
  folder_.WriteModel("ids.kgl", TinyRecurrent({.vocabulary = false}));
  const Outcome outcome = Run("a.kgl ./b.kgl ids.kgl --text valid.txt --plot p.svg");
  const std::string svg = folder_.Read("p.svg");
  EXPECT_TRUE(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\"")) << svg;
  EXPECT_TRUE(Has(svg, ">a</text>") && Has(svg, ">b</text>")) << svg;
  EXPECT_TRUE(Has(svg, "Size and perplexity on valid.txt")) << svg;
  EXPECT_TRUE(Has(outcome.out, "ids.kgl: not in p.svg, without a perplexity")) << outcome.out;
  ExpectRefused("ids.kgl --text valid.txt --plot q.svg", "at least one model with a perplexity");
  ExpectRefused("a.kgl --text valid.txt --plot valid.txt", "valid.txt");
}

TEST_F(TableTest, WrongInputIsRefused) {
  folder_.Write("empty.txt", "");
  folder_.Write("damaged.kgl", folder_.Read("a.kgl").substr(100));
  ExpectRefused("a.kgl missing.kgl --text valid.txt", "missing.kgl");
  ExpectRefused("damaged.kgl --text valid.txt", "damaged.kgl");
  ExpectRefused("a.kgl --text missing.txt", "missing.txt");
  ExpectRefused("a.kgl --text valid.txt --test missing.txt", "missing.txt");
  ExpectRefused("a.kgl --text empty.txt", "at least one that is scored, found none");
  ExpectRefused("a.kgl", "--text", 2);
  ExpectRefused("--text valid.txt", "M.kgl", 2);
  ExpectRefused("a.kgl --text valid.txt --format html", "html", 2);
  ExpectRefused("a.kgl --text valid.txt --json --format csv", "--format", 2);
  ExpectRefused("a.kgl --text valid.txt --tokens 0", "--tokens", 2);
  const Outcome pipe =
      folder_.RunShell("cat valid.txt | kinglet table a.kgl b.kgl --text /dev/stdin");
  EXPECT_TRUE(Has(pipe.error, "expected a file, as it is read twice")) << pipe.error;
}

}  // namespace
}  // namespace kinglet::table_test
