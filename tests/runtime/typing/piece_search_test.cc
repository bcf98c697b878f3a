// Words of pieces against brute force: all sequences of up to four pieces.
#include "runtime/typing/piece_search.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "tests/runtime/typing/typing_fixture.h"

namespace kinglet::typing {
namespace {

// Byte-pair codes: a piece with "@@" is continued by any piece.
const std::vector<std::string> kPieces = {"th@@", "e", "<unk>", "the", "er",
                                          "on@@", ",", "a@@",   "n",   "<eos>"};
constexpr size_t kMost = 4;

std::shared_ptr<const Model> Pieces() { return ModelOf(kPieces, TextTables{false, MergeTables{}}); }

bool IsPiece(uint32_t id) {
  return id < kPieces.size() && kPieces[id][0] != '<' && kPieces[id] != ",";
}
bool IsContinued(uint32_t id) { return kPieces[id].ends_with("@@"); }
std::string TextOfPiece(uint32_t id) {
  return kPieces[id].substr(0, kPieces[id].size() - (IsContinued(id) ? 2 : 0));
}

struct BruteWord {
  double log_probability, cost;
};

// Every word of at most kMost pieces: the best of its sequences.
class AllWords {
 public:
  AllWords(MadeUpPredictor& predictor, const Touches& touches, const ErrorCosts& errors,
           bool is_finished, uint32_t size)
      : predictor_(predictor),
        touches_(touches),
        errors_(errors),
        is_finished_(is_finished),
        p_(size) {
    Extend({}, "", 0);
  }
  std::map<std::string, BruteWord> words;

 private:
  void Extend(const std::vector<uint32_t>& ids, const std::string& text, double sum) {
    std::vector<float> p(p_.size());
    EXPECT_TRUE((ids.empty() ? predictor_.Next(p) : predictor_.After(ids, p)).ok());
    const bool may_continue = ids.empty() || IsContinued(ids.back());
    double more = 0;
    for (uint32_t id = 0; id < p.size(); ++id) {
      if (!IsPiece(id) || !may_continue) continue;
      more += std::exp(static_cast<double>(p[id]));
      if (ids.size() == kMost) continue;
      std::vector<uint32_t> longer = ids;
      longer.push_back(id);
      Extend(longer, text + TextOfPiece(id), sum + static_cast<double>(p[id]));
    }
    if (ids.empty()) return;
    const double end = may_continue ? std::log1p(-more) : 0;
    const double cost = CostOf(text, touches_, 0, touches_.count(), errors_, is_finished_);
    const auto [place, is_new] = words.try_emplace(text, BruteWord{sum + end, cost});
    if (!is_new) {
      place->second.log_probability = std::max(place->second.log_probability, sum + end);
    }
  }

  MadeUpPredictor& predictor_;
  const Touches& touches_;
  const ErrorCosts& errors_;
  const bool is_finished_;
  std::vector<float> p_;
};

TEST(PieceSearch, FindsTheBestWordsOfBruteForce) {
  const auto model = Pieces();
  PieceSearch search(std::make_shared<PieceVocabulary>(*model));
  const std::string typed[] = {"the", "then", "anthe", "one", "er", "on", ""};
  int questions = 0, best_found = 0;
  for (uint64_t context = 1; context <= 60; ++context) {
    MadeUpPredictor predictor(context);
    Typist typist(0.5, 0.05, context);
    const Touches touches = typist.Type(typed[context % std::size(typed)]);
    const bool is_finished = context % 2 == 0;
    const ErrorCosts errors;
    const AllWords all(predictor, touches, errors, is_finished, model->vocabulary_size());
    std::map<std::string, FoundPieces> found;
    bool was_stopped = false;
    const Status status = search.Find(
        touches, errors, is_finished,
        [&](std::span<const uint32_t> ids, std::span<float> out) {
          return ids.empty() ? predictor.Next(out) : predictor.After(ids, out);
        },
        [] { return -kNever; },
        [&](const FoundPieces& word) {
          const auto [place, is_new] = found.try_emplace(word.text, word);
          if (!is_new && word.score() > place->second.score()) place->second = word;
        },
        [] { return false; }, was_stopped);
    ASSERT_TRUE(status.ok()) << status.message();
    double best = -kNever, best_of_found = -kNever;
    for (const auto& [text, word] : all.words)
      best = std::max(best, word.log_probability - word.cost);
    for (const auto& [text, word] : found) {
      best_of_found = std::max(best_of_found, word.score());
      const auto place = all.words.find(text);
      if (text.size() > kMost) continue;  // perhaps of more pieces
      ASSERT_NE(place, all.words.end()) << text;
      EXPECT_LE(word.log_probability, place->second.log_probability + 1e-5) << text;
      EXPECT_NEAR(word.cost, place->second.cost, 1e-9) << text;
    }
    if (best == -kNever) continue;
    ++questions;
    best_found += best_of_found >= best - 1e-5 ? 1 : 0;
  }
  EXPECT_GE(questions, 40);
  EXPECT_GE(best_found, questions * 95 / 100);
}

TEST(PieceSearch, StopsWhenItIsTold) {
  const auto model = Pieces();
  PieceSearch search(std::make_shared<PieceVocabulary>(*model));
  MadeUpPredictor predictor(3);
  bool was_stopped = false;
  int offered = 0;
  const Status status = search.Find(
      Exactly("the"), {}, false,
      [&](std::span<const uint32_t> ids, std::span<float> out) {
        return ids.empty() ? predictor.Next(out) : predictor.After(ids, out);
      },
      [] { return -kNever; }, [&](const FoundPieces&) { ++offered; }, [] { return true; },
      was_stopped);
  EXPECT_TRUE(status.ok());
  EXPECT_TRUE(was_stopped);
  EXPECT_EQ(offered, 0);
}

// The decoder's answers: words, completions, blocked words, a person's words, typed letters.
TEST(PieceSearch, AnswersTheDecoder) {
  const auto words = TypingVocabulary::Of(Pieces());
  ASSERT_TRUE(words.ok()) << words.status().message();
  TypingDecoder decoder(*words);
  MadeUpPredictor predictor(5);
  TypingQuestion question;
  question.touches = Exactly("the");
  question.margin = kNever;
  question.count = 50;
  question.is_finished = true;
  const auto texts = [&] {
    std::vector<std::string> found;
    const auto answer = decoder.Find(predictor, question);
    EXPECT_TRUE(answer.ok()) << answer.status().message();
    for (const auto& candidate : answer->candidates) found.push_back(candidate.text);
    return found;
  };
  const auto has = [&](const std::string& text) {
    const auto found = texts();
    return std::find(found.begin(), found.end(), text) != found.end();
  };
  EXPECT_TRUE(has("the"));
  question.capitals = Capitals::kFirst;
  EXPECT_TRUE(has("The"));
  question.capitals = Capitals::kAsWritten;
  decoder.SetBlocked(std::array<std::string, 1>{"THE"});
  EXPECT_FALSE(has("the"));
  decoder.SetBlocked({});
  EXPECT_FALSE(has("thx"));
  ASSERT_TRUE(decoder.user().Learn("test", "", "thx").ok());
  EXPECT_TRUE(has("thx"));
  question.deadline = std::chrono::steady_clock::now();
  const auto late = decoder.Find(predictor, question);
  ASSERT_TRUE(late.ok());
  EXPECT_FALSE(late->is_complete);
}

}  // namespace
}  // namespace kinglet::typing
