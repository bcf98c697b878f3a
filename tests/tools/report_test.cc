// kinglet report on tiny models: the page is written completely or not at all, refusals are one
// line, and all texts of a vocabulary or a text are escaped. report_page_test.py checks figures and
// looks at pages.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "format/vocabulary.h"
#include "tests/support/classifier_builder.h"
#include "tests/support/translation_builder.h"
#include "tests/tools/run_command.h"
#include "tools/report/html.h"

namespace kinglet::report_test {
namespace {

class ReportTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_.WriteModel("m.kgl", TinyMicronet({.quantised = true, .cache_capacity = 8}));
    folder_.WriteModel("plain.kgl", TinyMicronet());
    folder_.WriteModel("ids.kgl", TinyMicronet({.vocabulary = false, .cache_capacity = 8}));
    folder_.Write("text.txt", "the w3 w4 w3\nthe w5\n");
    folder_.Write("ids.txt", "0 3 4 3 1 0 5 1\n");
    folder_.Run("verify m.kgl");  // leaves the files with the output of a command
  }
  // The page that the command writes.
  std::string Page(const std::string& arguments) const {
    const Outcome outcome = folder_.Run("report " + arguments + " -o r.html --tokens 5");
    EXPECT_EQ(outcome.exit_status, 0) << outcome.error;
    return folder_.Read("r.html");
  }
  // The command ends with one line that has `part`, and leaves no file.
  void ExpectRefused(const std::string& arguments, const std::string& part, int status = 1) const {
    const auto count = [this] {
      return std::distance(std::filesystem::directory_iterator(folder_.Path(".")), {});
    };
    const auto before = count();
    const Outcome outcome = folder_.Run("report " + arguments + " --tokens 5");
    EXPECT_EQ(outcome.exit_status, status) << arguments;
    EXPECT_TRUE(outcome.IsRefusal()) << arguments << "\n" << outcome.error << outcome.out;
    EXPECT_NE(outcome.error.find(part), std::string::npos) << outcome.error;
    EXPECT_EQ(count(), before) << arguments;
  }
  static bool Has(const std::string& page, const std::string& part) {
    return page.find(part) != std::string::npos;
  }
  CommandFolder folder_;
};

TEST_F(ReportTest, ShowsWhatWasMeasuredAndPlanned) {
  std::filesystem::copy(KINGLET_TEST_DATA "/micronet-small-fp32", folder_.Path("c"),
                        std::filesystem::copy_options::recursive);
  ASSERT_EQ(folder_
                .Run("sensitivity c --vocab c/vocab.txt --ids c/tokens.txt --sparsities 0.3,0.6 "
                     "--bits 3,5 --tensors layers.0.qkv.weight '*.fc.3.weight' -o s.json")
                .exit_status,
            0);
  ASSERT_EQ(folder_.Run("plan s.json --sparsity 0.4 -o r.json").exit_status, 0);
  const std::string page = Page("m.kgl --ids ids.txt --sensitivity s.json --plan r.json");
  EXPECT_TRUE(Has(page, "by fraction of zeros of one tensor")) << page;
  EXPECT_TRUE(Has(page, "by bits of one tensor"));
  EXPECT_FALSE(Has(page, "by codes of one tensor"));
  EXPECT_TRUE(Has(page, "*.fc.3.weight"));
  EXPECT_TRUE(Has(page, "Choices of the plan"));
  EXPECT_FALSE(Has(Page("m.kgl --ids ids.txt --plan r.json"), "Sensitivity of each tensor"));
  folder_.Write("other.json", "{\"passes\": []}");
  ExpectRefused("m.kgl --ids ids.txt --plan other.json -o x.html", "other.json");
  ExpectRefused("m.kgl --ids ids.txt --plan missing.json -o x.html", "missing.json");
  ExpectRefused("m.kgl --ids ids.txt --sensitivity text.txt -o x.html", "text.txt");
  ExpectRefused("m.kgl --ids ids.txt --sensitivity s.json -o s.json", "s.json");
}

TEST_F(ReportTest, WordsWithoutAnEarlierOccurrenceAreNamed) {
  const std::string page = Page("m.kgl --ids ids.txt");
  EXPECT_TRUE(Has(page, "never before"));
  EXPECT_FALSE(Has(page, " and more"));
}

TEST_F(ReportTest, TextsWithoutAScoredTokenAreRefused) {
  folder_.Write("empty.txt", "");
  folder_.Write("one.txt", "3\n");
  folder_.Write("space.txt", " \n");
  ExpectRefused("m.kgl --text empty.txt -o r.html", "at least one that is scored, found none");
  ExpectRefused("m.kgl --ids one.txt -o r.html", "at least one that is scored, found none");
  ExpectRefused("m.kgl --text space.txt -o r.html", "at least one that is scored, found none");
  ExpectRefused("m.kgl --text missing.txt -o r.html", "missing.txt");
}

TEST_F(ReportTest, ModelsThatPredictNoTextAreRefused) {
  folder_.WriteModel("translation.kgl", TinyTranslation());
  folder_.WriteModel("vectors.kgl", TinyClassifier({.classes = 0}));
  ExpectRefused("translation.kgl --ids ids.txt -o r.html", "one with an encoder");
  ExpectRefused("vectors.kgl --ids ids.txt -o r.html", "expected");
  ExpectRefused("ids.kgl --text text.txt -o r.html", "a model that has ids only");
  ExpectRefused("m.kgl ids.kgl --text text.txt -o r.html", "a model that has ids only");
}

TEST_F(ReportTest, WrongCommandLinesAndPlacesAreRefused) {
  ExpectRefused("m.kgl -o r.html", "--text FILE or --ids FILE", 2);
  ExpectRefused("m.kgl --text text.txt --ids ids.txt -o r.html", "found both", 2);
  ExpectRefused("m.kgl plain.kgl --text - -o r.html", "read twice", 2);
  ExpectRefused("m.kgl --text text.txt", "-o", 2);
  ExpectRefused("m.kgl --text text.txt -o -", "-o", 2);
  ExpectRefused("m.kgl --text text.txt -o missing/r.html", "missing");
  ExpectRefused("m.kgl --text text.txt -o text.txt", "text.txt");
  ExpectRefused("plain.kgl m.kgl --text text.txt -o m.kgl", "m.kgl");
}

TEST_F(ReportTest, AnOldPageStaysUntilTheNewOneIsWhole) {
  folder_.Write("r.html", "old");
  ExpectRefused("m.kgl --text missing.txt -o r.html", "missing.txt");
  EXPECT_EQ(folder_.Read("r.html"), "old");
  EXPECT_TRUE(Page("m.kgl --text text.txt").starts_with("<!DOCTYPE html>"));
}

TEST_F(ReportTest, FiguresAreThoseOfTheCommands) {
  for (const std::string backend : {"cpu", "ref64"}) {
    const std::string inputs = " --ids ids.txt --json --backend " + backend;
    auto report = folder_.Run("report m.kgl plain.kgl -o r.html --tokens 5" + inputs).Json();
    ASSERT_EQ(report.size(), 3U);
    EXPECT_EQ(report.back()["difference"],
              folder_.Run("diff m.kgl plain.kgl" + inputs).Json().back()["difference"]);
    report.pop_back();
    for (const auto& one : report) {
      const std::string model = one["model"];
      EXPECT_EQ(one["score"], folder_.Run("score " + model + inputs).Json().back());
      EXPECT_EQ(one["count"], folder_.Run("count " + model + inputs).Json().back());
      EXPECT_EQ(one["inspect"], folder_.Run("inspect --json " + model).Json().back());
      EXPECT_EQ(one["bench"].size(), 3U);
      EXPECT_EQ(one["passage"].size(), 7U);
      EXPECT_EQ(one["cache"].is_null(), model == "plain.kgl");
      EXPECT_EQ(one["passage"][0].contains("cache_part"), model == "m.kgl");
    }
  }
}

// All values except times.
TEST_F(ReportTest, TimesAreOfTheTextWhereItIsLongEnough) {
  std::string ids;
  for (int i = 0; i < 90; ++i) ids += std::to_string(i * i % 23) + " ";
  folder_.Write("many.txt", ids);
  for (const std::string file : {"ids.txt", "many.txt"}) {
    const auto report =
        folder_.Run("report m.kgl -o r.html --tokens 20 --json --ids " + file).Json().back();
    const bool long_enough = file == "many.txt";
    EXPECT_EQ(report["bench_ids"], long_enough ? "text" : "made up");
    const auto bench =
        folder_.Run("bench m.kgl --tokens 20 --json" + (long_enough ? " --ids " + file : ""))
            .Json();
    ASSERT_EQ(bench.size(), 3U);
    for (size_t mode = 0; mode < bench.size(); ++mode) {
      const auto& found = report["bench"][mode];
      for (const char* key : {"mode", "roofline_bytes", "tails_opened", "timed"}) {
        EXPECT_EQ(found[key], bench[mode][key]) << key;
      }
      ASSERT_EQ(found["steps"].size(), bench[mode]["steps"].size());
      for (size_t i = 0; i < found["steps"].size(); ++i) {
        for (const char* key : {"name", "bytes", "muls"}) {
          EXPECT_EQ(found["steps"][i][key], bench[mode]["steps"][i][key]) << key;
        }
      }
    }
  }
}

TEST_F(ReportTest, ModelsOfOneNameHaveTheirPaths) {
  std::filesystem::create_directory(folder_.Path("other"));
  std::filesystem::copy(folder_.Path("plain.kgl"), folder_.Path("other/m.kgl"));
  EXPECT_TRUE(Has(Page("m.kgl other/m.kgl --ids ids.txt"), "<h1>m.kgl and other/m.kgl</h1>"));
  EXPECT_TRUE(Has(Page("other/m.kgl plain.kgl --ids ids.txt"), "<h1>m.kgl and plain.kgl</h1>"));
}

TEST_F(ReportTest, TheVerdictSaysWhatTheTextCanTell) {
  std::filesystem::copy(folder_.Path("plain.kgl"), folder_.Path("same.kgl"));
  const std::string short_text = Page("m.kgl plain.kgl --ids ids.txt");
  EXPECT_TRUE(Has(short_text, " is smaller than ")) << short_text;
  EXPECT_TRUE(Has(short_text, "too short to know how much of the difference is noise.</p>"));
  std::string ids;
  for (int i = 0; i < 600; ++i) ids += std::to_string(i * i % 23) + " ";
  folder_.Write("many.txt", ids);
  const std::string same = Page("plain.kgl same.kgl --ids many.txt");
  EXPECT_TRUE(Has(same, ">same.kgl has as many bytes as plain.kgl and has perplexity ")) << same;
  EXPECT_TRUE(Has(same,
                  "(0.0 %), a difference within the noise of this text (95 % interval: "
                  "0.0000 to 0.0000 nats a token).</p>"));
  EXPECT_TRUE(Has(same, "<th scope=\"row\">perplexity</th>"));
}

TEST_F(ReportTest, ModelsWithoutCacheOrWordsHaveTheirPage) {
  const std::string plain = Page("plain.kgl --text text.txt");
  EXPECT_TRUE(Has(plain, "This model has no neural cache."));
  EXPECT_FALSE(Has(plain, "network alone:"));
  const std::string ids = Page("ids.kgl --ids ids.txt");
  EXPECT_TRUE(Has(ids, "ids without words"));
  EXPECT_TRUE(Has(ids, "Best five: "));
}

TEST_F(ReportTest, UnknownWordsAloneAreShownAsTyped) {
  folder_.Write("unknown.txt", "alpha beta alpha gamma");
  const Outcome outcome =
      folder_.Run("report m.kgl --text unknown.txt -o r.html --tokens 5 --json");
  ASSERT_EQ(outcome.exit_status, 0) << outcome.error;
  EXPECT_NE(outcome.error.find("75.0 % of the scored tokens are unknown"), std::string::npos)
      << outcome.error;
  const auto report = outcome.Json().back();
  EXPECT_EQ(report["score"]["oov"], 3);
  EXPECT_EQ(report["passage"][0]["text"], "beta");
  const std::string page = folder_.Read("r.html");
  EXPECT_TRUE(Has(page, "<b>beta</b>, scored as &lt;unk&gt;: probability"));
  EXPECT_TRUE(Has(page, "<span class=\"u\">Dotted</span> words are not in the vocabulary"));
  EXPECT_FALSE(Has(Page("m.kgl --text text.txt"), "Dotted"));
}

TEST_F(ReportTest, ThePassageIsBounded) {
  std::string text;
  for (int i = 0; i < 40000; ++i) text += i % 7 == 0 ? "the\n" : "w3 w4 ";
  folder_.Write("long.txt", text);
  const Outcome outcome =
      folder_.Run("report plain.kgl --text long.txt -o r.html --tokens 5 --passage 3 --json");
  ASSERT_EQ(outcome.exit_status, 0) << outcome.error;
  const auto report = outcome.Json().back();
  EXPECT_EQ(report["passage"].size(), 3U);
  EXPECT_EQ(report["score"], folder_.Run("score plain.kgl --text long.txt --json").Json().back());
  const std::string page = folder_.Read("r.html");
  EXPECT_TRUE(Has(page, "The first 3 scored tokens of 80,000")) << page.size();
  EXPECT_LT(page.size(), 60000U);
}

// A word of probability zero occurs in the text.
TEST_F(ReportTest, LossesWithoutEndHaveTheirPage) {
  ModelDraft draft = TinyMicronet();
  const auto* softmax = FindBlock<AdaptiveSoftmax>(draft.description);
  std::vector<float>& bias = std::get<DenseF32>(draft.tensors[*softmax->head_bias].values).values;
  bias[0] = 3e38f;
  bias[1] = -3e38f;
  folder_.WriteModel("never.kgl", draft);
  const Outcome outcome = folder_.Run("report never.kgl --ids ids.txt -o r.html --tokens 5 --json");
  ASSERT_EQ(outcome.exit_status, 0) << outcome.error;
  EXPECT_TRUE(outcome.Json().back()["score"]["impossible"].get<bool>());
  const std::string page = folder_.Read("r.html");
  EXPECT_TRUE(Has(page, "<dt>perplexity</dt><dd>infinite</dd>"));
  for (const char* number : {"\"nan", "\"inf", "\"-nan", " nan", ">nan", ">inf<"}) {
    EXPECT_FALSE(Has(page, number)) << number;
  }
}

TEST_F(ReportTest, HostileWordsAreText) {
  ModelDraft draft = TinyMicronet({.cache_capacity = 8});
  std::vector<std::string> words(draft.description.vocabulary_size);
  for (size_t i = 0; i < words.size(); ++i) words[i] = "<script>alert(" + std::to_string(i) + ")";
  words[0] = "\"'&amp;--><img src=x onerror=alert(1)>";
  words[1] = "\xff\xfe</span>";
  words[2] = "<unk>";
  words[3] = "</title></style></table><script>alert(0)</script>";
  words[4] =
      "\xe2\x80\xae"
      "reversed";
  draft.vocabulary = words;
  folder_.WriteModel("<b>.kgl", draft);
  folder_.Write("<i>.txt", "<svg/onload=alert(1)> <script> & \x01 ]]> </body>\n");
  for (const std::string inputs : {"--ids ids.txt", "--text '<i>.txt'"}) {
    const std::string page = Page("'<b>.kgl' " + inputs);
    for (const char* tag : {"<script", "<img", "<b>.kgl", "<i>", "<svg/", "&amp;amp;--><"}) {
      EXPECT_FALSE(Has(page, tag)) << tag;
    }
    EXPECT_EQ(page.find("</style>"), page.rfind("</style>"));
    EXPECT_EQ(page.find("</title>"), page.rfind("</title>"));
    EXPECT_EQ(page.find("</body>"), page.rfind("</body>"));
    EXPECT_TRUE(Has(page, "&lt;b&gt;.kgl"));
  }
}

TEST(HtmlText, EscapesEveryByte) {
  EXPECT_EQ(HtmlText("a<b>&\"'c"), "a&lt;b&gt;&amp;&quot;&#39;c");
  EXPECT_EQ(HtmlText(std::string_view("\0\n\x7f\xff", 4)), "\\x00\\x0A\\x7F\\xFF");
  EXPECT_EQ(HtmlText("\xc3\xa9"), "\xc3\xa9");
}

TEST(HtmlText, NumbersForPeople) {
  EXPECT_EQ(Whole(1234567.5), "1,234,568");
  EXPECT_EQ(Whole(-0.2), "0");
  EXPECT_EQ(Whole(-1234), "-1,234");
  EXPECT_EQ(Decimal(HUGE_VAL, 2), "infinite");
  EXPECT_EQ(Decimal(std::nan(""), 2), "none");
  EXPECT_EQ(Chance(-HUGE_VAL), "0.0");
  EXPECT_EQ(Chance(std::log(0.07)), "0.070");
  EXPECT_EQ(Shortened("\xc3\xa9\xc3\xa9\xc3\xa9", 2), "\xc3\xa9\xe2\x80\xa6");
  EXPECT_EQ(Shortened("abc", 3), "abc");
}

}  // namespace
}  // namespace kinglet::report_test
