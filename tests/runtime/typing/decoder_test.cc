// The decoder against brute force: every word, and every second word, aligned by a full table.
#include "runtime/typing/decoder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "tests/runtime/typing/typing_fixture.h"

namespace kinglet::typing {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Brute {
  std::string text;
  double score, cost;
};

std::string Raised(std::string word, Capitals capitals) {
  for (size_t i = 0; i < word.size(); ++i) {
    if (capitals == Capitals::kAll || (capitals == Capitals::kFirst && i == 0)) {
      word[i] = static_cast<char>(std::toupper(word[i]));
    }
  }
  return word;
}

// The best of each text, best first.
std::vector<Brute> Best(const std::vector<Brute>& all, size_t count) {
  std::map<std::string, Brute> best;
  for (const Brute& one : all) {
    const auto [place, is_new] = best.try_emplace(one.text, one);
    if (!is_new && one.score > place->second.score) place->second = one;
  }
  std::vector<Brute> sorted;
  for (const auto& [text, one] : best) {
    if (one.score > -kInfinity) sorted.push_back(one);
  }
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Brute& a, const Brute& b) { return a.score > b.score; });
  if (sorted.size() > count) sorted.resize(count);
  return sorted;
}

class BruteForce {
 public:
  BruteForce(std::vector<std::string> words, const TypingVocabulary& spelled, bool has_joining)
      : words_(std::move(words)), spelled_(spelled), has_joining_(has_joining) {}

  std::vector<Brute> Find(WordPredictor& predictor, const TypingQuestion& question) const {
    std::vector<float> p(words_.size());
    EXPECT_TRUE(predictor.Next(p).ok());
    const size_t n = question.touches.count();
    std::vector<Brute> all;
    for (size_t id = 0; id < words_.size(); ++id) {
      if (!IsWord(id) || Joins(id)) continue;
      const double cost =
          CostOf(words_[id], question.touches, 0, n, question.errors, question.is_finished);
      all.push_back({Raised(words_[id], question.capitals), p[id] - cost, cost});
    }
    AddTyped(question, p[2], all);
    AddTwoWords(predictor, question, p, all);
    std::vector<Brute> best = Best(all, question.count);
    std::erase_if(
        best, [&](const Brute& one) { return one.score < best.front().score - question.margin; });
    return best;
  }

 private:
  bool IsWord(size_t id) const {
    return words_[id][0] != '<' && words_[id] != "@-@" && words_[id] != "=";
  }
  bool Joins(size_t id) const { return has_joining_ && words_[id][0] == '\''; }

  void AddTyped(const TypingQuestion& question, float unknown, std::vector<Brute>& all) const {
    std::string letters;
    double cost = 0;
    for (size_t touch = 0; touch < question.touches.count(); ++touch) {
      const auto touched = question.touches.at(touch);
      if (touched.empty()) return;
      const TouchedCharacter* cheapest = &touched[0];
      for (const TouchedCharacter& one : touched) {
        if (one.cost < cheapest->cost) cheapest = &one;
      }
      letters += static_cast<char>(cheapest->character);
      cost += cheapest->cost;
    }
    for (const std::string& word : words_) {
      std::string lower = word;
      for (char& letter : lower) letter = static_cast<char>(std::tolower(letter));
      if (lower == letters) return;
    }
    if (letters.empty()) return;
    const double share = spelled_.LogShareOfUnknown(LowerLetters(letters));
    all.push_back({Raised(letters, question.capitals), unknown + share - cost, cost});
  }

  struct First {
    Brute word;
    size_t id, split;
    double estimate;
  };
  // The first words of a split, with what a second word may add.
  void AddFirsts(const TypingQuestion& question, size_t split, const std::vector<float>& p,
                 std::vector<First>& firsts) const {
    const ErrorCosts& errors = question.errors;
    double second = -kInfinity;
    std::vector<First> found;
    for (size_t id = 0; id < words_.size(); ++id) {
      if (!IsWord(id)) continue;
      const double rest = CostOf(words_[id], question.touches, split, question.touches.count(),
                                 errors, question.is_finished);
      const double space = errors.missing_space;
      second = std::max(
          second,
          Joins(id) ? -rest : std::min(p[id] - rest + TypingDecoder::kEstimate, 0.0) - space);
      if (Joins(id)) continue;
      const double cost = CostOf(words_[id], question.touches, 0, split, errors, true);
      found.push_back({{Raised(words_[id], question.capitals), p[id] - cost, cost}, id, split, 0});
    }
    std::stable_sort(found.begin(), found.end(),
                     [](const First& a, const First& b) { return a.word.score > b.word.score; });
    std::vector<First> kept;
    for (First first : found) {
      const bool is_new = std::none_of(kept.begin(), kept.end(), [&](const First& other) {
        return other.word.text == first.word.text;
      });
      const bool is_near = first.word.score >= found[0].word.score - TypingDecoder::kNear;
      first.estimate = first.word.score + second;
      if (is_new && is_near && kept.size() < TypingDecoder::kFirstWords) kept.push_back(first);
    }
    firsts.insert(firsts.end(), kept.begin(), kept.end());
  }

  void AddTwoWords(WordPredictor& predictor, const TypingQuestion& question,
                   const std::vector<float>& p, std::vector<Brute>& all) const {
    if (!has_joining_ && std::isinf(question.errors.missing_space)) return;
    const std::vector<Brute> best = Best(all, question.count);
    if (best.empty()) return;
    double lowest = best.front().score - TypingDecoder::kNear;
    if (best.size() == question.count) lowest = std::max(lowest, best.back().score);
    std::vector<First> firsts;
    for (size_t split = 1; split < question.touches.count(); ++split)
      AddFirsts(question, split, p, firsts);
    std::erase_if(firsts, [&](const First& first) { return first.estimate < lowest - 1e-9; });
    std::stable_sort(firsts.begin(), firsts.end(),
                     [](const First& a, const First& b) { return a.estimate > b.estimate; });
    if (firsts.size() > TypingDecoder::kFirstWords) {
      firsts.erase(firsts.begin() + TypingDecoder::kFirstWords, firsts.end());
    }
    std::vector<float> next(words_.size());
    for (const First& first : firsts) {
      EXPECT_TRUE(predictor.After(std::array{static_cast<uint32_t>(first.id)}, next).ok());
      for (size_t id = 0; id < words_.size(); ++id) {
        if (!IsWord(id)) continue;
        const double cost = CostOf(words_[id], question.touches, first.split,
                                   question.touches.count(), question.errors, question.is_finished);
        const double space = Joins(id) ? 0 : question.errors.missing_space;
        const Capitals capitals =
            question.capitals == Capitals::kAll ? Capitals::kAll : Capitals::kAsWritten;
        all.push_back({first.word.text + (Joins(id) ? "" : " ") + Raised(words_[id], capitals),
                       first.word.score + next[id] - cost - space, first.word.cost + cost + space});
      }
    }
  }

  std::vector<std::string> words_;
  const TypingVocabulary& spelled_;
  bool has_joining_;
};

void ExpectSame(const TypingAnswer& answer, const std::vector<Brute>& expected,
                const std::string& what) {
  EXPECT_TRUE(answer.is_complete) << what;
  const std::vector<TypingCandidate>& found = answer.candidates;
  ASSERT_EQ(found.size(), expected.size()) << what;
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_NEAR(found[i].score(), expected[i].score, 2e-5) << what;
    EXPECT_NEAR(found[i].cost, expected[i].cost, 1e-9) << what << ": " << found[i].text;
    EXPECT_EQ(found[i].text, expected[i].text) << what;
  }
}

TEST(TypingDecoder, EqualsBruteForceForAThousandWords) {
  const std::vector<std::string> words = MadeUpWords(200);
  TypingDecoder decoder(WordsOf(words));
  decoder.SetWeights({0, 0});
  const BruteForce brute(words, decoder.words(), false);
  const double noises[] = {0.2, 0.5, 0.8};
  for (size_t noise = 0; noise < 3; ++noise) {
    Typist typist(noises[noise], 0.03, noise);
    for (uint64_t i = 0; i < 1000; ++i) {
      MadeUpPredictor predictor(1 + i + 1000 * noise);
      const std::string& word = words[8 + i % (words.size() - 8)];
      TypingQuestion question;
      question.touches = typist.Type(word.substr(0, i % 2 == 0 ? word.size() : 1 + i % 5));
      question.errors.missing_space = kInfinity;
      question.is_finished = i % 2 == 0;
      question.capitals = static_cast<Capitals>(i / 2 % 3);
      question.count = 1 + i % 5;
      const auto answer = decoder.Find(predictor, question);
      ASSERT_TRUE(answer.ok()) << answer.status().message();
      ExpectSame(*answer, brute.Find(predictor, question), word + " " + std::to_string(i));
    }
  }
}

TEST(TypingDecoder, EqualsBruteForceWithTwoWords) {
  std::vector<std::string> words = MadeUpWords(70);
  words.insert(words.end(), {"don", "it", "'t", "'s", "'ll"});
  TypingDecoder decoder(WordsOf(words, TextTables{false, WordRule{WordRule::Rule::kWikiText}}));
  decoder.SetWeights({0, 0});
  const BruteForce brute(words, decoder.words(), true);
  size_t of_two_words = 0;
  for (uint64_t i = 0; i < 120; ++i) {
    Typist typist(0.2 + 0.3 * static_cast<double>(i % 3), 0.02, i);
    MadeUpPredictor predictor(1 + i);
    std::string letters = words[8 + i % 60] + (i % 4 == 0 ? "t" : words[8 + i * 7 % 60]);
    if (i % 4 == 0) letters = "dont";
    TypingQuestion question;
    question.touches = typist.Type(letters);
    question.errors.missing_space = i % 2 == 0 ? 0.5 : 3;
    question.errors.insertion = i % 5 == 0 ? 0 : 6;
    question.is_finished = i % 3 != 0;
    question.capitals = static_cast<Capitals>(i % 3);
    question.count = 4;
    const auto answer = decoder.Find(predictor, question);
    ASSERT_TRUE(answer.ok()) << answer.status().message();
    ExpectSame(*answer, brute.Find(predictor, question), letters + " " + std::to_string(i));
    for (const auto& one : answer->candidates) {
      of_two_words += one.kind == TypingCandidate::Kind::kTwoWords ? 1 : 0;
    }
  }
  EXPECT_GT(of_two_words, 15u);
}

std::vector<std::string> TextsOf(const Result<TypingAnswer>& answer) {
  std::vector<std::string> texts;
  EXPECT_TRUE(answer.ok()) << answer.status().message();
  for (const auto& candidate : answer->candidates) texts.push_back(candidate.text);
  return texts;
}

constexpr ErrorCosts kNoErrors = {kInfinity, kInfinity, kInfinity, kInfinity, kInfinity};

std::vector<std::string> Ask(TypingDecoder& decoder, const std::string& letters, size_t count,
                             Capitals capitals = Capitals::kAsWritten,
                             const ErrorCosts& errors = kNoErrors) {
  MadeUpPredictor predictor;
  TypingQuestion question;
  question.touches = Exactly(letters);
  question.count = count;
  question.capitals = capitals;
  question.is_finished = true;
  question.errors = errors;
  question.margin = kInfinity;
  return TextsOf(decoder.Find(predictor, question));
}

using Texts = std::vector<std::string>;

TEST(TypingDecoder, MarksAndSpecialTokensAreNoCandidates) {
  TypingDecoder decoder(WordsOf({"the", "<eos>", "<unk>", "@-@", "=", "<formula>", "a b", "7", "-",
                                 "\xC3\x97", "\xE2\x80\x94", "\xD7\x90", "k", "l"}));
  MadeUpPredictor predictor;
  TypingQuestion question;
  question.count = 99;
  Texts found = TextsOf(decoder.Find(predictor, question));
  std::sort(found.begin(), found.end());
  EXPECT_EQ(found, (Texts{"7", "k", "l", "the", "\xD7\x90"}));
}

TEST(TypingDecoder, CapitalsAreThoseOfThePosition) {
  TypingDecoder decoder(WordsOf({"us", "<eos>", "<unk>", "US", "Us", "\xC3\xA9t\xC3\xA9", "it"}));
  Texts found = Ask(decoder, "us", 3);
  std::sort(found.begin(), found.end());
  EXPECT_EQ(found, (Texts{"US", "Us", "us"}));
  found = Ask(decoder, "us", 2, Capitals::kFirst);
  std::sort(found.begin(), found.end());
  EXPECT_EQ(found, (Texts{"US", "Us"}));
  EXPECT_EQ(Ask(decoder, "us", 1, Capitals::kAll), Texts{"US"});
  EXPECT_EQ(Ask(decoder, "ete", 1, Capitals::kFirst), Texts{"\xC3\x89t\xC3\xA9"});
  EXPECT_EQ(Ask(decoder, "zzz", 1, Capitals::kFirst), Texts{"Zzz"});  // the letters as typed
}

TEST(TypingDecoder, AccentsAndApostrophesNeedNotBeTyped) {
  TypingDecoder decoder(WordsOf({"don't", "<eos>", "<unk>", "caf\xC3\xA9", "cafe",
                                 "stra\xC3\x9F"
                                 "e",
                                 "x-ray"}));
  EXPECT_EQ(Ask(decoder, "dont", 1), Texts{"don't"});
  EXPECT_EQ(Ask(decoder, "xray", 1), Texts{"x-ray"});
  Texts found = Ask(decoder, "cafe", 2);
  std::sort(found.begin(), found.end());
  EXPECT_EQ(found, (Texts{"cafe", "caf\xC3\xA9"}));
  // A letter typed with its accent means that letter.
  MadeUpPredictor predictor;
  TypingQuestion question;
  question.touches = Exactly("caf");
  const TouchedCharacter accented[] = {{0xC9, 0}};  // in upper case: shift changes no letter
  question.touches.Add(accented);
  question.errors = kNoErrors;
  EXPECT_EQ(TextsOf(decoder.Find(predictor, question)), Texts{"caf\xC3\xA9"});
}

TEST(TypingDecoder, DigitsAreTypedAsLettersAre) {
  TypingDecoder decoder(WordsOf({"1933", "<eos>", "<unk>", "1939", "19", "b2b", "bwb", "3"}));
  EXPECT_EQ(Ask(decoder, "1933", 9), Texts{"1933"});
  EXPECT_EQ(Ask(decoder, "1941", 9), Texts{"1941"});  // a number that no list has
  // Any digit for another one, and a key that has a letter and a digit.
  constexpr ErrorCosts kOtherKeys = {kInfinity, kInfinity, kInfinity, 0, kInfinity};
  Texts found = Ask(decoder, "1932", 9, Capitals::kAsWritten, kOtherKeys);
  std::sort(found.begin(), found.end());
  EXPECT_EQ(found, (Texts{"1932", "1933", "1939"}));
  MadeUpPredictor predictor;
  TypingQuestion question;
  question.errors = kNoErrors;
  question.touches = Exactly("b");
  const TouchedCharacter key[] = {{U'w', 0.5}, {U'2', 0.4}};
  question.touches.Add(key);
  question.touches.Add(Exactly("b").at(0));
  found = TextsOf(decoder.Find(predictor, question));
  std::sort(found.begin(), found.end());
  EXPECT_EQ(found, (Texts{"b2b", "bwb"}));
}

TEST(TypingDecoder, BlockedWordsAreBlockedInEverySpelling) {
  TypingDecoder decoder(
      WordsOf({"don't", "<eos>", "<unk>", "caf\xC3\xA9", "cafe", "Cafe", "dont"}));
  const Texts blocked = {"CAF\xC3\x89", "dont"};
  decoder.SetBlocked(blocked);
  EXPECT_EQ(Ask(decoder, "cafe", 9), Texts{});
  EXPECT_EQ(Ask(decoder, "dont", 9), Texts{});
  decoder.SetBlocked({});
  EXPECT_EQ(Ask(decoder, "cafe", 9).size(), 3u);
  const Texts allowed = {"cafe"};
  decoder.SetAllowed(allowed);
  Texts found = Ask(decoder, "cafe", 9);
  std::sort(found.begin(), found.end());
  EXPECT_EQ(found, (Texts{"Cafe", "cafe", "caf\xC3\xA9"}));
  const ErrorCosts no_space = {6, 3, 4, 14, kInfinity};
  EXPECT_EQ(Ask(decoder, "xyz", 9, Capitals::kAsWritten, no_space).size(), 3u);
  decoder.SetBlocked(allowed);
  EXPECT_EQ(Ask(decoder, "cafe", 9), Texts{});
}

TEST(TypingDecoder, WordsOfTwoTokensAreBlockedToo) {
  const std::vector<std::string> words = {"didn", "<eos>", "<unk>", "'t", "did"};
  TypingDecoder decoder(WordsOf(words, TextTables{false, WordRule{WordRule::Rule::kWikiText}}));
  EXPECT_EQ(Ask(decoder, "didnt", 9), (Texts{"didn't", "didnt"}));
  decoder.SetBlocked(Texts{"Didn't"});
  EXPECT_EQ(Ask(decoder, "didnt", 9), Texts{});
  EXPECT_EQ(Ask(decoder, "did", 9), Texts{"did"});
}

TEST(TypingDecoder, WithoutWordsThereAreLettersOnly) {
  TypingDecoder decoder(WordsOf({"<a>", "<eos>", "<unk>", "<b>"}));
  EXPECT_EQ(Ask(decoder, "ab", 9, Capitals::kAsWritten, {6, 3, 4, 14, 4}).size(), 1u);
  EXPECT_EQ(Ask(decoder, "", 9), Texts{});
}

// A word that no list has: its probability is a share of the unknown word's.
TEST(TypingDecoder, TypedLettersAreACandidate) {
  TypingDecoder decoder(WordsOf(MadeUpWords(300)));
  decoder.SetWeights({0, 0});
  MadeUpPredictor predictor;
  TypingQuestion question;
  question.touches = Exactly("kqzx");
  question.count = 5;
  question.is_finished = true;
  question.errors = kNoErrors;
  const auto answer = decoder.Find(predictor, question);
  ASSERT_TRUE(answer.ok());
  ASSERT_FALSE(answer->candidates.empty());
  const TypingCandidate& typed = answer->candidates[0];
  EXPECT_EQ(typed.text, "kqzx");
  EXPECT_EQ(typed.kind, TypingCandidate::Kind::kTyped);
  EXPECT_EQ(typed.cost, 0);
  std::vector<float> p(300);
  ASSERT_TRUE(predictor.Next(p).ok());
  EXPECT_NEAR(typed.log_probability, p[2] + decoder.words().LogShareOfUnknown(U"kqzx"), 1e-12);
  EXPECT_LT(typed.log_probability, p[2]);
}

TEST(TypingDecoder, OddQuestionsHaveAnswers) {
  TypingDecoder decoder(WordsOf(MadeUpWords(300)));
  MadeUpPredictor predictor;
  TypingQuestion question;
  question.count = 3;
  EXPECT_EQ(TextsOf(decoder.Find(predictor, question)).size(), 3u);  // no touches: completions
  question.count = 0;
  EXPECT_EQ(TextsOf(decoder.Find(predictor, question)).size(), 0u);
  question.count = 1000;
  question.margin = kInfinity;
  EXPECT_GT(TextsOf(decoder.Find(predictor, question)).size(), 250u);

  // No errors are possible, and nothing matches.
  question.errors = kNoErrors;
  question.touches = Exactly("the\1");
  Texts found = TextsOf(decoder.Find(predictor, question));
  EXPECT_EQ(found, Texts{"the\1"});
  question.touches.Add({});
  EXPECT_EQ(TextsOf(decoder.Find(predictor, question)), Texts{});
  // All costs are zero: every word explains everything.
  question.errors = {0, 0, 0, 0, 0};
  question.count = 3;
  EXPECT_EQ(TextsOf(decoder.Find(predictor, question)).size(), 3u);
  // 40 letters.
  question.errors = {};
  question.touches = Exactly("thethethethethethethethethethethethethet");
  EXPECT_EQ(TextsOf(decoder.Find(predictor, question)).size(), 3u);

  // A deadline that has passed: what there is, and a flag.
  question.deadline = std::chrono::steady_clock::now();
  const auto late = decoder.Find(predictor, question);
  ASSERT_TRUE(late.ok());
  EXPECT_FALSE(late->is_complete);
  EXPECT_EQ(late->candidates.size(), 1u);  // the typed letters
}

}  // namespace
}  // namespace kinglet::typing
