// A model with a tokenizer: every command that reads text uses it, and unknown words keep their
// spelling.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "format/writer.h"
#include "tests/support/model_builder.h"
#include "tests/support/translation_builder.h"
#include "tests/tools/run_command.h"

namespace kinglet::model_text_test {
namespace {

using Json = nlohmann::ordered_json;

// The words are "the", <eos>, <unk>, "w3", "w4", ...
class ModelTextTest : public testing::Test {
 protected:
  void SetUp() override {
    ModelDraft draft = TinyMicronet({.cache_capacity = 3});
    draft.vocabulary[5] = ",";
    draft.tokenizer = TextTables{true, WordRule{WordRule::Rule::kWikiText}};
    folder_.WriteModel("m.kgl", draft);
    folder_.Write("typed.txt", "The W3, Kinglet\nw4\n");
    folder_.Write("ids.txt", "0 3 5 2 1 4 1");
    folder_.Write("lines.txt", "0 3 5 2\n4\n");
  }
  std::vector<Json> Run(const std::string& arguments) {
    const Outcome outcome = folder_.Run(arguments + " --json");
    EXPECT_EQ(outcome.exit_status, 0) << arguments << ": " << outcome.error;
    return outcome.Json();
  }
  CommandFolder folder_;
};

TEST_F(ModelTextTest, Score) {
  const auto typed = Run("score m.kgl --text typed.txt"), ids = Run("score m.kgl --ids ids.txt");
  ASSERT_EQ(typed.size(), ids.size());
  for (size_t i = 0; i + 1 < ids.size(); ++i) {
    EXPECT_EQ(typed[i]["id"], ids[i]["id"]);
    EXPECT_EQ(typed[i]["logprob"], ids[i]["logprob"]);
    EXPECT_EQ(typed[i].contains("text"), i == 2);
  }
  EXPECT_EQ(typed[2]["token"], "<unk>");
  EXPECT_EQ(typed[2]["text"], "Kinglet");
  EXPECT_NE(folder_.Run("score m.kgl --text typed.txt --tokens").out.find("  <unk> Kinglet\n"),
            std::string::npos);
}

// A model that has a tokenizer needs no other one.
TEST_F(ModelTextTest, ManyUnknownWordsAreSaid) {
  const Outcome typed = folder_.Run("score m.kgl --text typed.txt");
  EXPECT_NE(typed.error.find("unknown words"), std::string::npos) << typed.error;
  EXPECT_EQ(typed.error.find("--tokenizer"), std::string::npos) << typed.error;
  folder_.WriteModel("words.kgl", TinyMicronet({.cache_capacity = 3}));
  const Outcome words = folder_.Run("score words.kgl --text typed.txt");
  EXPECT_NE(words.error.find("--tokenizer"), std::string::npos) << words.error;
}

// A text that was split into pieces before counts as the original text: words, bytes and characters
// are those of the model that splits the text itself.
TEST_F(ModelTextTest, PiecesOfATextThatWasCutAreNoWords) {
  ModelDraft draft = TinyMicronet();
  const std::vector<std::string> pieces = {"lo@@",  "w@@",  "er",  "<eos>",
                                           "<unk>", "than", "e@@", "r"};
  std::copy(pieces.begin(), pieces.end(), draft.vocabulary.begin());
  folder_.WriteModel("before.kgl", draft);
  draft.tokenizer = TextTables{false, WordRule{WordRule::Rule::kSpaces}};
  folder_.WriteModel("spaces.kgl", draft);
  draft.tokenizer = TextTables{
      false,
      MergeTables{
          false, {{"l", "o"}, {"e", "r</w>"}, {"t", "h"}, {"a", "n</w>"}, {"th", "an</w>"}}, {}}};
  folder_.WriteModel("bpe.kgl", draft);
  folder_.Write("typed.txt", "lower than er\nlower\n");
  folder_.Write("pieces.txt", "lo@@ w@@ er than er\nlo@@ w@@ er\n");
  for (const std::string lines : {"", " --lines"}) {
    const auto typed = Run("score bpe.kgl --text typed.txt" + lines).back();
    EXPECT_EQ(typed["words"], lines.empty() ? 5 : 6) << typed;
    for (const std::string model : {"before.kgl", "spaces.kgl"}) {
      const auto from_pieces = Run("score " + model + " --text pieces.txt" + lines).back();
      for (const char* const key :
           {"scored", "nll", "words", "ppl_per_word", "bits_per_byte", "bits_per_character"}) {
        EXPECT_EQ(from_pieces[key], typed[key]) << model << lines << " " << key;
      }
    }
  }
}

TEST_F(ModelTextTest, ScoreLines) {
  for (const std::string more : {"", " --no-bos"}) {
    const auto typed = Run("score m.kgl --lines --tokens --text typed.txt" + more);
    const auto ids = Run("score m.kgl --lines --tokens --ids lines.txt" + more);
    ASSERT_EQ(typed.size(), ids.size());
    int spelt = 0;
    for (size_t i = 0; i + 1 < ids.size(); ++i) {
      EXPECT_EQ(typed[i]["logprob"], ids[i]["logprob"]);
      if (!typed[i].contains("text")) continue;
      EXPECT_EQ(typed[i]["text"], "Kinglet");
      EXPECT_EQ(typed[i]["pos"], 3);
      ++spelt;
    }
    EXPECT_EQ(spelt, 1);
  }
}

TEST_F(ModelTextTest, Predict) {
  const Outcome typed = folder_.Run("predict m.kgl --json", "The W3, Kinglet\nw4\n");
  EXPECT_EQ(typed.exit_status, 0) << typed.error;
  EXPECT_EQ(typed.out, folder_.Run("predict m.kgl --json --ids ids.txt").out);
  EXPECT_NE(folder_.Run("predict m.kgl", "The W3, Kinglet\n").out.find("<unk> Kinglet"),
            std::string::npos);
}

TEST_F(ModelTextTest, TuneCache) {
  auto typed = Run("tune-cache m.kgl --text typed.txt -o a.kgl").back();
  const auto ids = Run("tune-cache m.kgl --ids ids.txt -o b.kgl").back();
  EXPECT_EQ(typed["after"], ids["after"]);
  EXPECT_EQ(typed["oov"], 1);
}

// Source and target have words of their own, and the same codes.
TEST(Translate, ReadsAndPrintsPlainText) {
  const CommandFolder folder;
  ModelDraft draft = TinyTranslation();
  folder.WriteModel("words.kgl", draft);
  draft.tokenizer = TextTables{false, MergeTables{false, {{"q", "r"}}, {}}};
  draft.source_vocabulary[7] = "qr@@";
  draft.source_vocabulary[8] = "s";
  for (std::string& word : draft.vocabulary) {
    if (word != "</s>" && word != "<unk>") word += "@@";
  }
  folder.WriteModel("codes.kgl", draft);
  folder.Write("ids.txt", "7 8\n\n");
  const auto ids = folder.Run("translate words.kgl --ids ids.txt --max-length 8 --json").Json();
  const Outcome typed = folder.Run("translate codes.kgl --max-length 8 --json", "qrs\n\n");
  ASSERT_EQ(typed.exit_status, 0) << typed.error;
  const auto texts = typed.Json();
  ASSERT_EQ(texts.size(), 2u);
  EXPECT_EQ(texts[0]["logprob"], ids[0]["logprob"]);
  std::string joined;
  for (const Json& token : ids[0]["target"]) joined += token["token"].get<std::string>();
  EXPECT_EQ(texts[0]["text"], joined);
  EXPECT_EQ(texts[1]["text"], "");
  EXPECT_EQ(folder.Run("translate codes.kgl --max-length 8", "qrs\n").out, joined + "\n");
}

}  // namespace
}  // namespace kinglet::model_text_test
