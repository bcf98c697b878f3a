#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "runtime/masked_text.h"
#include "tests/support/masked_builder.h"
#include "tests/support/transformer_builder.h"
#include "tests/tools/run_command.h"

namespace kinglet::fill_test {
namespace {

class FillTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_.WriteModel("m.kgl", TinyMasked());
    folder_.Write("ids.txt", "2 9 4 13 3 4 3\n\n2 6 3\n");
    folder_.Write("segments.txt", "0 0 0 0 0 1 1\n\n0 0 0\n");
    ModelOptions options;
    options.backend = "ref";
    session_ = *Session::Create(*Model::Open(folder_.Path("m.kgl"), options));
  }
  CommandFolder folder_;
  std::unique_ptr<Session> session_;
};

constexpr const char* kInput = " --ids ids.txt --segments segments.txt --backend ref";

TEST_F(FillTest, TheBestWordsOfEachMask) {
  const auto lines = folder_.Run("fill m.kgl --top 3 --json" + std::string(kInput)).Json();
  ASSERT_EQ(lines.size(), 2u);
  const std::vector<uint32_t> ids = {2, 9, 4, 13, 3, 4, 3}, segments = {0, 0, 0, 0, 0, 1, 1};
  ASSERT_TRUE(session_->Encode(ids, segments, 0).ok());
  for (size_t i = 0; i < 2; ++i) {
    const uint64_t position = i == 0 ? 2 : 5;
    EXPECT_EQ(lines[i]["line"], 1);
    EXPECT_EQ(lines[i]["pos"], position);
    ASSERT_TRUE(session_->LookAt(position).ok());
    const auto best = *session_->TopK(3);
    ASSERT_EQ(lines[i]["top"].size(), 3u);
    for (size_t k = 0; k < 3; ++k) {
      EXPECT_EQ(lines[i]["top"][k]["id"], best[k].id);
      EXPECT_NEAR(lines[i]["top"][k]["logprob"], best[k].log_probability, 1e-7);
    }
  }
  const Outcome text = folder_.Run("fill m.kgl --top 1" + std::string(kInput));
  EXPECT_EQ(text.exit_status, 0) << text.error;
  EXPECT_TRUE(text.out.starts_with("1\t2\t")) << text.out;
}

// Lower-casing a text does not change [MASK].
TEST_F(FillTest, LowerCaseIsOfTheTextsLetters) {
  ModelDraft draft = TinyMasked();
  draft.tokenizer = TextTables{false, WordPieceTables{false, draft.vocabulary}};
  folder_.WriteModel("cased.kgl", draft);
  draft.tokenizer->lower_case = true;
  folder_.WriteModel("lower.kgl", draft);
  const Outcome typed = folder_.Run("fill lower.kgl --json", "T9 [MASK] T13 [SEP] [MASK].\n");
  const Outcome lower = folder_.Run("fill cased.kgl --json", "t9 [MASK] t13 [SEP] [MASK].\n");
  EXPECT_EQ(lower.Json().size(), 2u) << lower.error;
  EXPECT_EQ(typed.out, lower.out) << typed.error;
}

TEST_F(FillTest, PseudoLogLikelihoods) {
  const auto lines = folder_.Run("fill m.kgl --score --tokens --json" + std::string(kInput)).Json();
  // Five tokens, an empty line, one token, the summary.
  ASSERT_EQ(lines.size(), 9u);
  const MaskedText text = {{2, 9, 4, 13, 3, 4, 3}, {0, 0, 0, 0, 0, 1, 1}};
  double sum = 0;
  size_t at = 0;
  for (const uint64_t position : {1, 2, 3, 5}) {
    const double expected = *MaskedLogProbability(text, position, 4, *session_);
    EXPECT_EQ(lines[at]["pos"], position);
    EXPECT_EQ(lines[at]["id"], text.ids[position]);
    EXPECT_NEAR(lines[at++]["logprob"], expected, 1e-7);
    sum += expected;
  }
  EXPECT_EQ(lines[at]["line"], 1);
  EXPECT_EQ(lines[at]["tokens"], 4);
  EXPECT_NEAR(lines[at++]["logprob"], sum, 1e-6);
  EXPECT_EQ(lines[at]["line"], 2);
  EXPECT_EQ(lines[at++]["tokens"], 0);
  EXPECT_EQ(lines[at++]["pos"], 1);
  EXPECT_EQ(lines[at++]["line"], 3);
  EXPECT_EQ(lines[at]["lines"], 3);
  EXPECT_EQ(lines[at]["scored"], 5);
}

TEST_F(FillTest, ThreadsChangeNothing) {
  const std::string command = "fill m.kgl --score --tokens --json" + std::string(kInput);
  EXPECT_EQ(folder_.Run(command).out, folder_.Run(command + " --threads 2").out);
}

TEST_F(FillTest, Refusals) {
  folder_.WriteModel("lm.kgl", TinyTransformer());
  folder_.WriteModel("pooled.kgl", TinyMasked({.words = false}));
  folder_.Write("long.txt", "2 3\n2 5 5 5 5 5 4 5 5 3\n");
  folder_.Write("short.txt", "0 0 0 0 0 1 1\n\n0 0\n");
  folder_.Write("one.txt", "0 0\n");
  folder_.Write("third.txt", "0 0 0 0 0 1 2\n\n0 0 0\n");
  const auto refused = [&](const std::string& arguments, int status, const std::string& error) {
    const Outcome outcome = folder_.Run(arguments);
    EXPECT_EQ(outcome.exit_status, status) << arguments;
    EXPECT_EQ(outcome.error, "kinglet: " + error + "\n");
  };
  refused("fill lm.kgl --ids ids.txt", 1,
          "lm.kgl: model: expected one that predicts masked words, found another kind of model");
  refused(
      "fill pooled.kgl --ids ids.txt", 1,
      "pooled.kgl: model: expected one that predicts masked words, found a masked model without "
      "that part");
  refused("fill m.kgl --ids long.txt", 1,
          "long.txt, line 2: session: source: expected 1 to 9 tokens, found 10");
  refused("fill m.kgl --ids ids.txt --segments short.txt", 1,
          "short.txt: line 3: expected 3 segments, found 2");
  refused("fill m.kgl --ids ids.txt --segments one.txt", 1,
          "one.txt: lines: expected 3, as in ids.txt, found 1");
  refused("fill m.kgl --ids ids.txt --segments third.txt", 1,
          "ids.txt, line 1: session: segment: expected a number below 2, found 2");
  refused("fill m.kgl < ids.txt", 1,
          "text: model: expected one with a tokenizer (convert --tokenizer vocab.txt), or "
          "--ids FILE, found another");
  refused("fill m.kgl --segments segments.txt", 2,
          "usage: fill: expected --segments with --ids FILE, found --segments alone. See `kinglet "
          "fill --help`.");
  for (const char* command :
       {"score m.kgl --ids ids.txt", "generate m.kgl --tokens 2", "predict m.kgl"}) {
    const std::string name(command, std::string_view(command).find(' '));
    refused(command, 1,
            name +
                ": model: expected a language model, found a masked model, for `fill` and "
                "`embed`");
  }
  refused("translate m.kgl --ids ids.txt", 1,
          "translate: m.kgl: expected a model with an encoder and a decoder, found a masked model, "
          "for `fill` and `embed`");
}

TEST_F(FillTest, EmbedsAndClassifiesTexts) {
  folder_.WriteModel("c.kgl", TinyMasked({.words = false, .scores = 3}));
  folder_.WriteModel("n.kgl", TinyMasked({.scores = 2, .scored = ScoredPart::kNextSentence}));
  folder_.WriteModel(
      "s.kgl",
      TinyMasked({.words = false, .pooler = false, .scores = 2, .scored = ScoredPart::kSpans}));
  folder_.Write("text.txt", "2 9 13 3 6 3\n");
  folder_.Write("seg.txt", "0 0 0 0 1 1\n");
  const std::string input = " --ids text.txt --segments seg.txt --backend ref --json";
  EXPECT_EQ(folder_.Run("embed c.kgl" + input).Json()[0]["vector"].size(), 8u);
  EXPECT_EQ(folder_.Run("embed c.kgl --classify" + input).Json()[0]["scores"].size(), 3u);
  EXPECT_EQ(folder_.Run("embed n.kgl --classify" + input).Json()[0]["next"].size(), 2u);
  const auto spans = folder_.Run("embed s.kgl --classify" + input).Json();
  EXPECT_EQ(spans[0]["start"].size(), 6u);
  EXPECT_EQ(spans[0]["end"].size(), 6u);
  ModelOptions options;
  options.backend = "ref";
  const auto session = *Session::Create(*Model::Open(folder_.Path("s.kgl"), options));
  const std::vector<uint32_t> ids = {2, 9, 13, 3, 6, 3}, segments = {0, 0, 0, 0, 1, 1};
  ASSERT_TRUE(session->Encode(ids, segments, 0).ok());
  for (size_t i = 0; i < ids.size(); ++i) {
    std::vector<double> scores(2);
    ASSERT_TRUE(session->Scores(scores, i).ok());
    EXPECT_NEAR(spans[0]["start"][i], scores[0], 1e-7);
    EXPECT_NEAR(spans[0]["end"][i], scores[1], 1e-7);
  }
  EXPECT_EQ(folder_.Run("embed m.kgl --classify --ids text.txt").error,
            "kinglet: m.kgl: --classify: expected a model that scores texts or spans, found one "
            "that does not\n");
  EXPECT_EQ(folder_.Run("embed s.kgl --ids text.txt").error,
            "kinglet: s.kgl: embed: expected a model with a pooler, found one without (`fill` "
            "predicts its words)\n");
}

}  // namespace
}  // namespace kinglet::fill_test
