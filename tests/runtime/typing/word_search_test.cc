// The search alone; decoder_test.cc compares it with brute force.
#include "runtime/typing/word_search.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/runtime/typing/typing_fixture.h"

namespace kinglet::typing {
namespace {

TEST(EntryScores, FindTheLargestOfAnyRange) {
  std::mt19937_64 random(3);
  EntryScores scores(5000);
  for (float& score : scores.scores()) score = static_cast<float>(random() % 100000);
  scores.Finish();
  for (int i = 0; i < 500; ++i) {
    const size_t first = random() % 5000, last = first + random() % (5001 - first);
    float largest = -std::numeric_limits<float>::infinity();
    for (size_t at = first; at < last; ++at) largest = std::max(largest, scores[at]);
    EXPECT_EQ(scores.Largest(first, last), largest) << first << " " << last;
  }
}

TEST(WordSearch, StopsWhenItIsTold) {
  WordList words;
  for (const std::string& word : MadeUpWords(500)) words.Add(LowerLetters(word), 0);
  words.Sort();
  const WordTrie trie(words);
  EntryScores scores(trie.entries());
  scores.Finish();
  TouchCosts costs;
  costs.Set(trie, Exactly("thethe"), {0, 0, 0, 0, 0});
  WordSearch search;
  bool was_stopped = false;
  WordQuestion question = {0, 6, true, 1000};
  const auto all = search.Find(trie, scores, costs, question, nullptr, was_stopped);
  EXPECT_EQ(all.size(), trie.entries());
  EXPECT_FALSE(was_stopped);
  int calls = 0;
  const auto some = search.Find(
      trie, scores, costs, question, [&] { return ++calls == 2; }, was_stopped);
  EXPECT_TRUE(was_stopped);
  EXPECT_LT(some.size(), all.size());
  question.lowest = 1;
  EXPECT_TRUE(search.Find(trie, scores, costs, question, nullptr, was_stopped).empty());
}

}  // namespace
}  // namespace kinglet::typing
