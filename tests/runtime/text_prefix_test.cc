#include "runtime/text_prefix.h"

#include <gtest/gtest.h>

#include <cmath>
#include <ctime>
#include <set>
#include <utility>

#include "runtime/stream_text.h"
#include "tests/runtime/session_fixture.h"
#include "tests/support/translation_builder.h"

namespace kinglet::text_prefix_test {
namespace {

using Tokens = std::vector<uint32_t>;

// A MicroNet of 23 words, the first of which are these pieces.
std::shared_ptr<const Model> ModelOf(const std::vector<std::string>& pieces,
                                     const std::optional<TextTables>& tokenizer, bool quantised) {
  ModelDraft draft = TinyMicronet({.quantised = quantised, .cache_capacity = 5});
  for (size_t i = 0; i < draft.vocabulary.size(); ++i) {
    draft.vocabulary[i] = i < pieces.size() ? pieces[i] : "q" + std::to_string(i);
  }
  draft.tokenizer = tokenizer;
  return Model::FromBytes(SerialiseModel(draft).value(), {}).value();
}
std::shared_ptr<const Model> Characters(bool quantised = true) {
  return ModelOf({"a", "b", "ab", "aa", "bab", " ", "<unk>", "<eos>", "\xC3", "\xA9", " a", "b a",
                  "\xC3\xA9", "c"},
                 TextTables{false, WordRule{WordRule::Rule::kCharacters}}, quantised);
}
std::shared_ptr<const Model> Merges() {
  return ModelOf({"a@@", "b", "a", "b@@", "ab", "<eos>", "ab@@", "<unk>"},
                 TextTables{false, MergeTables{}}, true);
}

const Tokens kContext = {7, 2, 0, 1};

// The text that tokens add after the context.
std::string TextAfter(const std::shared_ptr<const Model>& model, const Tokens& ids) {
  StreamText text(model, "");
  for (const uint32_t id : kContext) text.Skip(id);
  std::string all;
  for (const uint32_t id : ids) all += text.Add(id);
  return all + text.Finish();
}
std::vector<double> ProbabilitiesAfter(const std::shared_ptr<const Model>& model,
                                       const Tokens& ids) {
  const auto session = Start(model);
  for (const uint32_t id : kContext) EXPECT_TRUE(session->StepToken(id).ok());
  for (const uint32_t id : ids) EXPECT_TRUE(session->StepToken(id).ok());
  std::vector<double> all(model->vocabulary_size());
  EXPECT_TRUE(session->Probabilities(std::span<double>(all)).ok());
  return all;
}

bool IsSilent(const Model& model, uint32_t id) { return model.vocabulary()->Word(id) == "<unk>"; }

// Runs all sequences of tokens after the context, each as far as it begins the prefix, from the
// start. `counted` are the sequences that lead to the prefix's end.
double BruteForce(const std::shared_ptr<const Model>& model, const std::string& prefix,
                  uint64_t& counted, const Tokens& sequence = {}) {
  const std::vector<double> all = ProbabilitiesAfter(model, sequence);
  // First what reaches the prefix's end, then what continues.
  double sum = 0;
  std::vector<double> rest;
  for (uint32_t id = 0; id < all.size(); ++id) {
    if (IsSilent(*model, id)) continue;
    Tokens longer = sequence;
    longer.push_back(id);
    const std::string text = TextAfter(model, longer);
    if (text.size() >= prefix.size()) {
      sum += text.starts_with(prefix) ? all[id] : 0;
    } else if (prefix.starts_with(text)) {
      uint64_t below = 0;
      const double further = BruteForce(model, prefix, below, longer);
      if (further > 0) counted += 1 + below;
      rest.push_back(all[id] * further);
    }
  }
  for (const double p : rest) sum += p;
  return sum;
}

// The probability of sequences that spell exactly `word`, and then of a token that ends it.
double BruteForceOfWord(const std::shared_ptr<const Model>& model, const std::string& word,
                        const Tokens& sequence = {}) {
  const std::vector<double> all = ProbabilitiesAfter(model, sequence);
  const std::string before = TextAfter(model, sequence);
  double sum = 0;
  for (uint32_t id = 0; id < all.size(); ++id) {
    Tokens longer = sequence;
    longer.push_back(id);
    const std::string added =
        IsSilent(*model, id) ? "" : TextAfter(model, longer).substr(before.size());
    if (before == word) {
      sum += added.empty() || added[0] == ' ' || added[0] == '\n' ? all[id] : 0;
    } else if (!added.empty() && word.starts_with(before + added)) {
      sum += all[id] * BruteForceOfWord(model, word, longer);
    }
  }
  return sum;
}

class TextPrefixTest : public testing::Test {
 protected:
  void Open(std::shared_ptr<const Model> model) {
    model_ = std::move(model);
    session_ = Start(model_, {.lanes = 2});
    for (const uint32_t id : kContext) ASSERT_TRUE(session_->StepToken(id, 1).ok());
    texts_.emplace(TextPrefix::Create(*model_).value());
  }
  double Probability(const std::string& prefix) {
    const auto p = texts_->Probability(*session_, 1, prefix, 1000);
    EXPECT_TRUE(p.ok()) << p.status().message();
    return p.ok() ? *p : -1;
  }
  std::shared_ptr<const Model> model_;
  std::unique_ptr<Session> session_;
  std::optional<TextPrefix> texts_;
};

TEST_F(TextPrefixTest, SumsOverAllSequencesOfPieces) {
  for (const auto& model : {Characters(), Characters(false), Merges()}) {
    ASSERT_NO_FATAL_FAILURE(Open(model));
    for (const char* prefix : {"a", "ab", "aba", "abab", " a", " ab", " ab a", "q8", "\xC3",
                               "\xC3\xA9", "z", "ac", "\xFF", "a\n", "b"}) {
      uint64_t counted = 0;
      const double expected = BruteForce(model, prefix, counted);
      EXPECT_EQ(Probability(prefix), expected) << prefix;
      EXPECT_EQ(texts_->steps(), counted) << prefix;
    }
    EXPECT_EQ(Probability(""), 1.0);
    EXPECT_EQ(Probability(std::string("a\0b", 3)), 0.0);
  }
}

TEST_F(TextPrefixTest, AWordModelTakesNoSteps) {
  ASSERT_NO_FATAL_FAILURE(Open(ModelOf({}, std::nullopt, true)));
  for (const char* letters : {"q", "q1", "q12", "x"}) {
    const TokenSet set = session_->WithPrefix(letters).value();
    EXPECT_EQ(Probability(std::string(" ") + letters), session_->ProbabilityOf(set, 1).value());
    EXPECT_EQ(texts_->steps(), 0u);
    EXPECT_EQ(Probability(letters), 0.0) << "a space stands before every word";
  }
}

TEST_F(TextPrefixTest, CharactersAddUpToThePrefix) {
  for (const auto& model : {Characters(), Merges()}) {
    ASSERT_NO_FATAL_FAILURE(Open(model));
    for (const std::string prefix : {"", "a", "ab", " a", "z"}) {
      const auto characters = texts_->NextCharacters(*session_, 1, prefix, 1000).value();
      double sum = 0;
      std::set<std::string> seen;
      for (const NextCharacter& character : characters) {
        EXPECT_TRUE(seen.insert(character.text).second);
        sum += character.probability;
        if (character.text.empty() || static_cast<unsigned char>(character.text[0]) >= 0x80) {
          continue;  // a token that spells nothing; a piece may end in the character
        }
        EXPECT_NEAR(character.probability, Probability(prefix + character.text),
                    1e-6 * character.probability)
            << prefix << "+" << character.text;
      }
      // Without a prefix a token that spells nothing counts too.
      EXPECT_NEAR(sum, Probability(prefix), 1e-5) << prefix;
    }
  }
}

TEST_F(TextPrefixTest, TheBestWordsAreThoseOfBruteForce) {
  for (const auto& model : {Characters(), Merges()}) {
    ASSERT_NO_FATAL_FAILURE(Open(model));
    const std::string prefix = " a";
    const auto best = texts_->Best(*session_, 1, prefix, {3, 256, 100000}).value();
    ASSERT_EQ(best.size(), 3u);
    for (size_t i = 0; i < best.size(); ++i) {
      EXPECT_TRUE(best[i].text.starts_with(prefix)) << best[i].text;
      // A sum lacks sequences that were dropped because they cannot be among the best themselves.
      const double whole = std::log(BruteForceOfWord(model, best[i].text));
      EXPECT_LE(best[i].log_probability, whole + 1e-4);
      EXPECT_GE(best[i].log_probability, whole - 0.1);
      if (i > 0) {
        EXPECT_LE(best[i].log_probability, best[i - 1].log_probability);
      }
    }
    // No word of at most three letters is better.
    std::set<std::string> found;
    for (const TextCompletion& word : best) found.insert(word.text);
    for (const std::string letters : {"", "a", "b", "ab", "ba", "aa", "bb"}) {
      if (found.contains(prefix + letters)) continue;
      EXPECT_LE(std::log(BruteForceOfWord(model, prefix + letters)),
                best.back().log_probability + 1e-4);
    }
    const auto narrow = texts_->Best(*session_, 1, prefix, {3, 1, 4}).value();
    EXPECT_LE(texts_->steps(), 4u);
    for (const TextCompletion& word : narrow) EXPECT_TRUE(word.text.starts_with(prefix));
    EXPECT_TRUE(texts_->Best(*session_, 1, "zz", {3, 8, 100}).value().empty());
    EXPECT_EQ(texts_->Best(*session_, 1, "", {3, 8, 1000}).value().size(), 3u);
    EXPECT_TRUE(texts_->Best(*session_, 1, prefix, {0, 8, 100}).value().empty());
  }
}

TEST_F(TextPrefixTest, TheStreamStaysAsItIs) {
  ASSERT_NO_FATAL_FAILURE(Open(Characters()));
  const uint64_t before = session_->Save(1)->Hash();
  const std::vector<double> all = Full(*session_, 1);
  Probability("abab");
  EXPECT_TRUE(texts_->NextCharacters(*session_, 1, "ab", 1000).ok());
  EXPECT_TRUE(texts_->Best(*session_, 1, "a", {}).ok());
  EXPECT_EQ(session_->Save(1)->Hash(), before);
  EXPECT_EQ(session_->position(1), kContext.size());
  EXPECT_EQ(Full(*session_, 1), all);
  // The answers are the stream's, after queries about another stream.
  const double p = Probability("aba");
  ASSERT_TRUE(session_->StepToken(3, 0).ok());
  EXPECT_NE(texts_->Probability(*session_, 0, "aba", 1000).value(), p);
  EXPECT_EQ(Probability("aba"), p);
}

TEST_F(TextPrefixTest, StepsAreBoundedAndStopped) {
  ASSERT_NO_FATAL_FAILURE(Open(Characters()));
  Probability("abab");
  const uint64_t needed = texts_->steps();
  ASSERT_GT(needed, 3u);
  EXPECT_TRUE(texts_->Probability(*session_, 1, "abab", needed).ok());
  const auto refused = texts_->Probability(*session_, 1, "abab", needed - 1);
  EXPECT_EQ(refused.status().code(), KINGLET_TOO_MANY_STEPS);
  EXPECT_EQ(texts_->steps(), 0u);
  // 2^64 sequences and more are counted, not run.
  const std::string many(100, 'a');
  EXPECT_EQ(texts_->Probability(*session_, 1, many, 1u << 20).status().code(),
            KINGLET_TOO_MANY_STEPS);
  // A text of words, each of which takes a step, is long, and hostile ones are longer.
  for (const size_t bytes : {size_t{3000}, size_t{1} << 24}) {
    std::string longest(bytes, 'c');
    EXPECT_EQ(texts_->Probability(*session_, 1, longest, UINT64_MAX).status().code(),
              KINGLET_TOO_MANY_STEPS);
  }
  // Cancelled when the last query about the stream itself has run: stopped before the next token.
  const State state = session_->Save(1).value();
  uint64_t ran = 0, last = UINT64_MAX;
  session_->set_observer([&](const Node&, std::span<const StreamFrame>) {
    if (++ran == last) session_->Cancel();
  });
  ASSERT_TRUE(session_->Restore(state, 1).ok());
  Probability("abab");
  last = std::exchange(ran, 0);
  ASSERT_GT(last, 0u);
  ASSERT_TRUE(session_->Restore(state, 1).ok());
  EXPECT_EQ(texts_->Probability(*session_, 1, "abab", 1000).status().code(), KINGLET_CANCELLED);
  EXPECT_EQ(texts_->steps(), 0u);
  EXPECT_EQ(session_->Save(1)->Hash(), state.Hash());
  session_->set_observer({});
  EXPECT_TRUE(texts_->Probability(*session_, 1, "abab", 1000).ok());
}

// Every word can follow at each byte of the prefix.
TEST_F(TextPrefixTest, PlanningALongPrefixIsStoppedAndTakesMemoryOfTheModel) {
  std::vector<std::string> words;
  for (size_t length = 1; length <= 23; ++length) words.emplace_back(length, 'a');
  const TextTables characters = {false, WordRule{WordRule::Rule::kCharacters}};
  ASSERT_NO_FATAL_FAILURE(Open(ModelOf(words, characters, false)));
  const std::string prefix(20000, 'a');
  session_->Cancel();
  EXPECT_EQ(texts_->Probability(*session_, 1, prefix, 1000).status().code(), KINGLET_CANCELLED);
  EXPECT_EQ(texts_->Probability(*session_, 1, prefix, 1000).status().code(),
            KINGLET_TOO_MANY_STEPS);
  session_->Cancel();
  EXPECT_EQ(texts_->NextCharacters(*session_, 1, prefix, 1000).status().code(), KINGLET_CANCELLED);

  MemoryBudget& budget = *model_->budget();
  const uint64_t left = budget.left(), planned = 168 * (prefix.size() + 1);
  ASSERT_TRUE(budget.Claim(left - planned));
  EXPECT_EQ(texts_->Probability(*session_, 1, prefix, 1000).status().code(),
            KINGLET_TOO_MANY_STEPS);
  ASSERT_TRUE(budget.Claim(1));
  EXPECT_EQ(texts_->Probability(*session_, 1, prefix, 1000).status().code(), KINGLET_OUT_OF_MEMORY);
  EXPECT_EQ(texts_->NextCharacters(*session_, 1, prefix, 1000).status().code(),
            KINGLET_OUT_OF_MEMORY);
  budget.Release(left - planned + 1);
  EXPECT_EQ(budget.left(), left);
}

// From the first places near the end more sequences lead on than are allowed, so others are not
// looked at; with a byte that no word has, every place is.
TEST_F(TextPrefixTest, TooManyStepsAreRefusedBeforeAllPlacesAreLookedAt) {
  std::vector<std::string> words;
  for (size_t length = 1; length <= 23; ++length) words.emplace_back(length, 'a');
  const TextTables characters = {false, WordRule{WordRule::Rule::kCharacters}};
  ASSERT_NO_FATAL_FAILURE(Open(ModelOf(words, characters, false)));
  const std::string prefix(20000, 'a');
  const auto seconds = [](const auto& call) {
    const std::clock_t begin = std::clock();
    call();
    return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  };
  const double all = seconds([&] { EXPECT_EQ(Probability(prefix + "z"), 0.0); });
  for (const uint64_t most : {uint64_t{0}, uint64_t{1000}, uint64_t{1} << 40}) {
    const double some = seconds([&] {
      EXPECT_EQ(texts_->Probability(*session_, 1, prefix, most).status().code(),
                KINGLET_TOO_MANY_STEPS);
    });
    EXPECT_LT(some, all / 4) << most;
  }
}

TEST_F(TextPrefixTest, Refusals) {
  ASSERT_NO_FATAL_FAILURE(Open(Characters()));
  EXPECT_EQ(texts_->Probability(*session_, 0, "a", 10).status().code(), KINGLET_NO_TOKEN_YET);
  EXPECT_EQ(texts_->NextCharacters(*session_, 0, "", 10).status().code(), KINGLET_NO_TOKEN_YET);
  EXPECT_EQ(texts_->Best(*session_, 0, "", {}).status().code(), KINGLET_NO_TOKEN_YET);
  EXPECT_EQ(texts_->Probability(*session_, 2, "a", 10).status().code(), KINGLET_INVALID_ARGUMENT);
  EXPECT_EQ(texts_->Best(*session_, 1, "a", {5, 0, 10}).status().code(), KINGLET_INVALID_ARGUMENT);
  TinyOptions ids_only;
  ids_only.vocabulary = false;
  EXPECT_EQ(TextPrefix::Create(*kinglet::Open(TinyMicronet(ids_only), "cpu")).status().code(),
            KINGLET_UNSUPPORTED);
  EXPECT_EQ(TextPrefix::Create(*kinglet::Open(TinyTranslation({}), "cpu")).status().code(),
            KINGLET_UNSUPPORTED);
}

}  // namespace
}  // namespace kinglet::text_prefix_test
