// A person's words in what a decoder answers.
#include "runtime/typing/user_overlay.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/runtime/typing/typing_fixture.h"
#include "tests/runtime/typing/user_words_fixture.h"

namespace kinglet::typing {
namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

std::vector<TypingCandidate> AskLetters(TypingDecoder& decoder, const std::string& letters,
                                        const std::string& before = "",
                                        Capitals capitals = Capitals::kAsWritten) {
  MadeUpPredictor predictor;
  TypingQuestion question;
  question.touches = Exactly(letters);
  question.before = before;
  question.capitals = capitals;
  question.count = 9;
  question.margin = kNoLimit;
  question.errors = {kNoLimit, kNoLimit, kNoLimit, kNoLimit, kNoLimit};
  const auto answer = decoder.Find(predictor, question);
  EXPECT_TRUE(answer.ok()) << answer.status().message();
  return answer->candidates;
}

bool Has(const std::vector<TypingCandidate>& found, const std::string& text) {
  return std::any_of(found.begin(), found.end(),
                     [&](const TypingCandidate& one) { return one.text == text; });
}

TEST(UserOverlay, LearnedWordsAreFoundAndUnlearnedOnesDoNotReturn) {
  const TemporaryFolder folder;
  const std::string path = folder.Path("words");
  const auto vocabulary = WordsOf(MadeUpWords(200));
  auto decoder = std::make_unique<TypingDecoder>(vocabulary);
  EXPECT_FALSE(Has(AskLetters(*decoder, "kin"), "Kinglet"));
  ASSERT_TRUE(decoder->user().Open(path).ok());
  for (const char* const word : {"Kinglet", "kinglet's", "Kinglet", "the", "kingdom"}) {
    const char* const before = *word == 'K' ? "A" : "of";
    ASSERT_TRUE(decoder->user().Learn("test", before, word).ok());
  }
  const auto check = [&] {
    const auto found = AskLetters(*decoder, "kin", "a");
    ASSERT_GE(found.size(), 3u);
    EXPECT_EQ(found[0].text, "Kinglet");  // used twice, and after this word
    EXPECT_EQ(found[0].kind, TypingCandidate::Kind::kUserWord);
    EXPECT_GT(found[0].log_probability, AskLetters(*decoder, "kin", "")[0].log_probability);
    EXPECT_TRUE(Has(AskLetters(*decoder, "kingletsx", ""), "kingletsx"));
    EXPECT_EQ(AskLetters(*decoder, "kinglets", "", Capitals::kAll)[0].text, "KINGLET'S");
  };
  check();
  decoder = std::make_unique<TypingDecoder>(vocabulary);
  ASSERT_TRUE(decoder->user().Open(path).ok());
  check();

  const std::vector<std::string> blocked = {"kinglet"};
  decoder->SetBlocked(blocked);
  EXPECT_FALSE(Has(AskLetters(*decoder, "kin"), "Kinglet"));
  EXPECT_TRUE(Has(AskLetters(*decoder, "kin"), "kinglet's"));
  decoder->SetBlocked({});

  uint64_t removed = 0;
  ASSERT_TRUE(decoder->user().Unlearn("KINGLETS", removed).ok());
  EXPECT_EQ(removed, 1u);
  ASSERT_TRUE(decoder->user().Unlearn("kinglet", removed).ok());
  EXPECT_EQ(removed, 1u);
  ASSERT_TRUE(decoder->user().Unlearn("kinglet", removed).ok());
  EXPECT_EQ(removed, 0u);
  EXPECT_EQ(FileBytes(path).find("inglet", 2), std::string::npos);  // but in the first line
  for (int i = 0; i < 2; ++i) {
    EXPECT_FALSE(Has(AskLetters(*decoder, "kin"), "Kinglet"));
    EXPECT_FALSE(Has(AskLetters(*decoder, "kinglets"), "kinglet's"));
    EXPECT_TRUE(Has(AskLetters(*decoder, "kin"), "kingdom"));
    EXPECT_EQ(ListOf(decoder->user().words()), (ListedWords{{"kingdom", 1}, {"the", 1}}));
    decoder = std::make_unique<TypingDecoder>(vocabulary);
    ASSERT_TRUE(decoder->user().Open(path).ok());
  }
  ASSERT_TRUE(decoder->user().Forget().ok());
  EXPECT_FALSE(Has(AskLetters(*decoder, "kin"), "kingdom"));
  EXPECT_EQ(FileBytes(path).size(), 16u);
  EXPECT_EQ(decoder->user().Learn("test", "", "no word").code(), KINGLET_INVALID_ARGUMENT);
}

TEST(UserOverlay, AFileThatCannotBeShortenedLearns) {
  const TemporaryFolder folder;
  const auto vocabulary = WordsOf(MadeUpWords(20));
  std::filesystem::create_directory(folder.Path("a"));
  UserOverlay user(vocabulary);
  ASSERT_TRUE(user.Open(folder.Path("a/words")).ok());
  std::filesystem::rename(folder.Path("a"), folder.Path("b"));
  constexpr uint32_t kUses = 1500;
  for (uint32_t i = 0; i < kUses; ++i) {
    ASSERT_TRUE(user.Learn("test", "", std::string(60, 'k')).ok()) << i;
  }
  EXPECT_GT(std::filesystem::file_size(folder.Path("b/words")), 65536u);
  UserOverlay copy(vocabulary);
  ASSERT_TRUE(copy.Copy(folder.Path("b/words")).ok());
  EXPECT_EQ(ListOf(copy.words()), (ListedWords{{std::string(60, 'k'), kUses}}));
}

// What Find returns is the mixture, for words of each kind, while the lists of the person change.
TEST(UserOverlay, AnswersAreMixed) {
  const std::vector<std::string> words = MadeUpWords(150);
  TypingDecoder decoder(WordsOf(words));
  const TypingWeights weights = {0.3, 0.05};
  decoder.SetWeights(weights);
  MadeUpPredictor predictor;
  for (uint32_t i = 0; i < 300; ++i) {
    const std::string word = i % 3 == 0 ? "new" + std::string(1, static_cast<char>('a' + i % 26))
                                        : words[8 + i * 7 % 140];
    ASSERT_TRUE(decoder.user().Learn("test", i % 2 == 0 ? "the" : "of", word).ok());
    for (const TypingCandidate& one : AskLetters(decoder, i % 2 == 0 ? word : "zq", "the")) {
      if (one.kind == TypingCandidate::Kind::kTwoWords) continue;
      const auto parts = decoder.PartsOf(predictor, "the", one.text);
      ASSERT_TRUE(parts.ok());
      EXPECT_NEAR(one.log_probability, std::log(parts->Mixed(weights)), 1e-5) << one.text;
    }
  }
}

// Over all words of any letters: a and b, and every other letter as one, with their number as a
// weight. What the sum lacks are longer words.
TEST(UserOverlay, ProbabilitiesOfAllWordsAddUpToOne) {
  const std::vector<std::string> words = {"a", "<eos>", "<unk>", "b", "ab", "="};
  TypingDecoder decoder(WordsOf(words));
  for (const char* const word : {"ab", "ba", "bb", "ba", "a"}) {
    ASSERT_TRUE(decoder.user().Learn("test", "a", word).ok());
  }
  MadeUpPredictor predictor;
  std::vector<float> p(decoder.words().model().vocabulary_size());
  ASSERT_TRUE(predictor.Next(p).ok());
  const double share = decoder.user().words().share();
  double network = 0, user = 0, spelling = 0;
  for (size_t id = 0; id < p.size(); ++id) {  // marks are the network's
    if (id == 0 || id == 2 || id == 3 || id == 4) continue;
    network += std::exp(double{p[id]});
    user += (1 - share) * std::exp(double{p[id]});
  }
  constexpr double kOthers = 0x110000 + 256 - 2;
  for (uint32_t length = 1; length <= 9; ++length) {
    const auto patterns = static_cast<uint32_t>(std::pow(3, length));
    for (uint32_t pattern = 0; pattern < patterns; ++pattern) {
      std::string word;
      double ways = 1;
      for (uint32_t i = 0, rest = pattern; i < length; ++i, rest /= 3) {
        word += static_cast<char>('a' + rest % 3);
        if (rest % 3 == 2) ways *= kOthers;
      }
      const auto parts = decoder.PartsOf(predictor, "a", word);
      ASSERT_TRUE(parts.ok());
      network += ways * parts->network;
      user += ways * parts->user;
      spelling += ways * parts->spelling;
    }
  }
  const TypingWeights weights = {0.25, 0.125};
  const double mixed = TypingParts{network, user, spelling}.Mixed(weights);
  for (const double sum : {network, user, spelling, mixed}) {
    EXPECT_LT(sum, 1 + 1e-6);
    EXPECT_GT(sum, 0.97);
  }
}

}  // namespace
}  // namespace kinglet::typing
