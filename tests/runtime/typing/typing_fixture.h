// Words, touches and predictions for tests of typing.
#ifndef KINGLET_TESTS_RUNTIME_TYPING_TYPING_FIXTURE_H_
#define KINGLET_TESTS_RUNTIME_TYPING_TYPING_FIXTURE_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "runtime/typing/decoder.h"
#include "tests/runtime/session_fixture.h"

namespace kinglet::typing {

// A model with these words, and marks that are no words; its own predictions are not used.
inline std::shared_ptr<const Model> ModelOf(const std::vector<std::string>& words,
                                            std::optional<TextTables> tokenizer = std::nullopt) {
  TinyOptions options;
  options.vocabulary_size = std::max(40U, static_cast<uint32_t>(words.size()));
  ModelDraft draft = TinyMicronet(options);
  for (size_t i = 0; i < draft.vocabulary.size(); ++i) {
    draft.vocabulary[i] = i < words.size() ? words[i] : "<" + std::to_string(i) + ">";
  }
  draft.tokenizer = std::move(tokenizer);
  return Open(draft, "cpu");
}

inline std::shared_ptr<const TypingVocabulary> WordsOf(
    const std::vector<std::string>& words, std::optional<TextTables> tokenizer = std::nullopt) {
  auto made = TypingVocabulary::Of(ModelOf(words, std::move(tokenizer)));
  EXPECT_TRUE(made.ok()) << made.status().message();
  return *made;
}

// Log-probabilities that depend on the context and the word, but have no meaning.
class MadeUpPredictor : public WordPredictor {
 public:
  explicit MadeUpPredictor(uint64_t context = 1) : context_(context) {}
  uint64_t version() const override { return context_; }
  Status Next(std::span<float> out) override { return Fill(context_ * 1000003, out); }
  Status After(std::span<const uint32_t> ids, std::span<float> out) override {
    uint64_t seed = context_ * 1000003;
    for (size_t i = 0; i < ids.size(); ++i) seed = (i == 0 ? seed : 31 * seed) + ids[i] + 1;
    return Fill(seed, out);
  }

 private:
  static Status Fill(uint64_t seed, std::span<float> out) {
    std::mt19937_64 random(seed);
    double sum = 0;
    for (float& p : out) {
      p = -12 * static_cast<float>(random() >> 11) / static_cast<float>(uint64_t{1} << 53);
      sum += std::exp(static_cast<double>(p));
    }
    for (float& p : out) p -= static_cast<float>(std::log(sum));
    return {};
  }
  uint64_t context_;
};

// The touches of letters on three rows of keys, with Gaussian noise of a deviation in widths of a
// key and with errors of each kind in a share of the letters.
class Typist {
 public:
  Typist(double deviation, double errors, uint64_t seed)
      : deviation_(deviation), errors_(errors), random_(seed) {}

  Touches Type(const std::string& letters) {
    std::string typed;
    for (const char letter : letters) {
      if (Happens()) continue;
      typed += letter;
      if (Happens()) typed += static_cast<char>('a' + random_() % 26);
      if (typed.size() > 1 && Happens())
        std::swap(typed[typed.size() - 1], typed[typed.size() - 2]);
    }
    Touches touches;
    for (const char letter : typed) {
      const auto [x, y] = PlaceOf(letter);
      std::normal_distribution<double> noise(0, deviation_);
      touches.Add(CharactersAt(x + noise(random_), y + noise(random_)));
    }
    return touches;
  }

 private:
  bool Happens() { return std::uniform_real_distribution<double>(0, 1)(random_) < errors_; }
  static std::pair<double, double> PlaceOf(char letter) {
    const std::string rows[] = {"qwertyuiop", "asdfghjkl", "zxcvbnm"};
    for (size_t row = 0; row < 3; ++row) {
      const size_t column = rows[row].find(letter);
      if (column != std::string::npos) {
        return {static_cast<double>(column) + 0.5 * static_cast<double>(row),
                static_cast<double>(row)};
      }
    }
    return {20, 20};
  }
  std::vector<TouchedCharacter> CharactersAt(double x, double y) const {
    std::vector<TouchedCharacter> characters;
    for (char letter = 'a'; letter <= 'z'; ++letter) {
      const auto [at_x, at_y] = PlaceOf(letter);
      const double squared = (x - at_x) * (x - at_x) + (y - at_y) * (y - at_y);
      const double cost = squared / (2 * deviation_ * deviation_);
      if (cost < 12) characters.push_back({static_cast<char32_t>(letter), cost});
    }
    return characters;
  }

  double deviation_, errors_;
  std::mt19937_64 random_;
};

// The least cost of explaining touches [first, last) by a word in ASCII, or by a beginning of it.
inline double CostOf(const std::string& word, const Touches& touches, size_t first, size_t last,
                     const ErrorCosts& errors, bool is_finished) {
  const size_t n = last - first, m = word.size();
  const auto by = [&](size_t touch, char letter) {
    double cost = errors.substitution;
    for (const auto& [character, c] : touches.at(first + touch)) {
      if (static_cast<char32_t>(std::tolower(letter)) == character) cost = std::min(cost, c);
    }
    return cost;
  };
  std::array<std::array<double, kMostTouches + 1>, 40> table;  // [letters][touches]
  for (size_t j = 0; j <= m; ++j) table[j].fill(std::numeric_limits<double>::infinity());
  table[0][0] = 0;
  for (size_t j = 0; j <= m; ++j) {
    for (size_t i = 0; i <= n; ++i) {
      double& least = table[j][i];
      if (i > 0) least = std::min(least, table[j][i - 1] + errors.insertion);
      if (j > 0) {
        const bool is_free = word[j - 1] == '\'' || word[j - 1] == '-';
        least = std::min(least, table[j - 1][i] + (is_free ? 0 : errors.deletion));
      }
      if (i > 0 && j > 0) least = std::min(least, table[j - 1][i - 1] + by(i - 1, word[j - 1]));
      if (i > 1 && j > 1) {
        least = std::min(least, table[j - 2][i - 2] + errors.transposition +
                                    by(i - 2, word[j - 1]) + by(i - 1, word[j - 2]));
      }
    }
  }
  if (is_finished) return table[m][n];
  double least = std::numeric_limits<double>::infinity();
  for (size_t j = 0; j <= m; ++j) least = std::min(least, table[j][n]);
  return least;
}

// Exactly these letters.
inline Touches Exactly(const std::string& letters) {
  Touches touches;
  for (const char letter : letters) {
    const TouchedCharacter only[] = {{static_cast<unsigned char>(letter), 0.0}};
    touches.Add(only);
  }
  return touches;
}

// Words of one to four syllables, some of them in several forms.
inline std::vector<std::string> MadeUpWords(size_t count) {
  const std::string syllables[] = {"a",  "ba", "the", "er",  "in", "con", "re", "s",
                                   "to", "ly", "ing", "dom", "e",  "ck",  "qu", "o"};
  std::mt19937_64 random(11);
  std::vector<std::string> words = {"the", "<eos>", "<unk>", "@-@", "=", "The", "THE", "don't"};
  while (words.size() < count) {
    std::string word;
    for (uint64_t i = random() % 4 + 1; i > 0; --i) word += syllables[random() % 16];
    if (random() % 8 == 0) word[0] = static_cast<char>(word[0] - 'a' + 'A');
    if (std::find(words.begin(), words.end(), word) == words.end()) words.push_back(word);
  }
  return words;
}

}  // namespace kinglet::typing

#endif  // KINGLET_TESTS_RUNTIME_TYPING_TYPING_FIXTURE_H_
