#include "converters/passes/character_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/model_builder.h"

namespace kinglet::character_table_test {
namespace {

// 'a' is (1, 0), 'b' is (0, 1), the padding (0, 0).
CharacterCnn TwoLetters() {
  CharacterCnn cnn;
  cnn.longest = 4;
  cnn.vector_width = 2;
  cnn.vectors.assign(kCharacterSymbols * 2, 0.0F);
  cnn.vectors[(1 + 'a') * 2] = 1;
  cnn.vectors[(1 + 'b') * 2 + 1] = 1;
  cnn.width = 1;
  cnn.bias = {0};
  return cnn;
}

// Computed by hand: 9 for an `a`, 1 for a `b` at the second position, -2 in any case.
TEST(CharacterTable, WindowsOfAWord) {
  CharacterCnn cnn = TwoLetters();
  cnn.filters.push_back({2, 1, {9, 0, 0, 1}, {-2}});
  cnn.projection = {1};
  cnn.bias = {100};
  const std::vector<std::string> words = {"ab", "ba", "bbb", "aaaab", "aaab", "", "c"};
  // ab: 9 + 1 - 2 = 8. ba: the a before a padding, 9 - 2. bbb: bb is 1 - 2 < 0. The fifth letter of
  // aaaab is dropped; its aa is 9 - 2. No letters: the bias, -2, is below 0.
  EXPECT_EQ(*CharacterTable(cnn, words, 1),
            (std::vector<float>{108, 107, 100, 107, 108, 100, 100}));
}

// Windows of paddings alone count: their sum is the bias where the padding's vector is zero.
TEST(CharacterTable, PaddingsAreCharacters) {
  CharacterCnn cnn = TwoLetters();
  cnn.filters.push_back({2, 1, {-1, -1, -1, -1}, {5}});
  cnn.projection = {1};
  // A window is 5 without letters, and one less for each.
  const std::vector<std::string> words = {"", "a", "aa", "aaa", "aaaa"};
  EXPECT_EQ(*CharacterTable(cnn, words, 1), (std::vector<float>{5, 5, 5, 4, 3}));
  cnn.vectors[0] = 7;  // a padding that is not zero
  EXPECT_EQ(*CharacterTable(cnn, words, 1), (std::vector<float>{0, 0, 3, 3, 3}));
  cnn.filters[0] = {4, 1, {0, 0, 0, 1, 0, 0, 0, 0}, {0}};  // as wide as a spelling: one window
  EXPECT_EQ(*CharacterTable(cnn, words, 1), (std::vector<float>{7, 7, 7, 7, 1}));
}

// The proposal's rows come first: with gates of 0, which are a half, x becomes (x + relu(p)) / 2.
TEST(CharacterTable, HighwayLayers) {
  CharacterCnn cnn = TwoLetters();
  cnn.filters.push_back({1, 2, {8, 0, 0, 4}, {0, 0}});
  cnn.highway.push_back({{0, 1, -1, 0, 0, 0, 0, 0}, {0, 0, 0, 0}});
  cnn.width = 2;
  cnn.projection = {1, 0, 0, 1};
  cnn.bias = {0, 0};
  // "ab": x = (8, 4), p = (4, -8).
  EXPECT_EQ(*CharacterTable(cnn, std::vector<std::string>{"ab"}, 1), (std::vector<float>{6, 2}));
  cnn.highway[0].bias = {0, 0, 1000, -1000};  // gates of 1 and 0: x, then relu(p)
  EXPECT_EQ(*CharacterTable(cnn, std::vector<std::string>{"ab"}, 1), (std::vector<float>{8, 0}));
}

std::vector<float> RandomEntries(uint64_t count, TestRandom& random) {
  std::vector<float> values(count);
  for (float& value : values) value = random.Signed();
  return values;
}

CharacterCnn RandomCnn(TestRandom& random) {
  CharacterCnn cnn;
  cnn.longest = 9;
  cnn.vector_width = 3;
  cnn.vectors = RandomEntries(kCharacterSymbols * 3, random);
  for (const auto& [width, channels] : {std::pair<uint64_t, uint64_t>{1, 2}, {4, 5}, {9, 1}}) {
    cnn.filters.push_back({width, channels, RandomEntries(channels * 3 * width, random),
                           RandomEntries(channels, random)});
  }
  for (int layer = 0; layer < 2; ++layer) {
    cnn.highway.push_back({RandomEntries(16 * 8, random), RandomEntries(16, random)});
  }
  cnn.width = 7;
  cnn.projection = RandomEntries(7 * 8, random);
  cnn.bias = RandomEntries(7, random);
  return cnn;
}

// The definition word for word: every window, every product.
std::vector<double> RowByDefinition(const CharacterCnn& cnn, std::string word) {
  word.resize(std::min<size_t>(word.size(), cnn.longest));
  std::vector<uint64_t> symbols(cnn.longest, 0);
  for (size_t i = 0; i < word.size(); ++i) symbols[i] = 1U + static_cast<unsigned char>(word[i]);
  std::vector<double> x;
  for (const CharacterFilter& filter : cnn.filters) {
    for (uint64_t channel = 0; channel < filter.channels; ++channel) {
      double largest = 0;
      for (uint64_t first = 0; first + filter.width <= cnn.longest; ++first) {
        double sum = filter.bias[channel];
        for (uint64_t i = 0; i < cnn.vector_width; ++i) {
          for (uint64_t place = 0; place < filter.width; ++place) {
            sum += double{filter.weight[(channel * cnn.vector_width + i) * filter.width + place]} *
                   cnn.vectors[symbols[first + place] * cnn.vector_width + i];
          }
        }
        largest = std::max(largest, sum);
      }
      x.push_back(largest);
    }
  }
  const auto row_of = [&x](const std::vector<float>& matrix, const std::vector<float>& bias,
                           size_t row) {
    double sum = bias[row];
    for (size_t i = 0; i < x.size(); ++i) sum += double{matrix[row * x.size() + i]} * x[i];
    return sum;
  };
  for (const HighwayLayer& layer : cnn.highway) {
    std::vector<double> next;
    for (size_t i = 0; i < x.size(); ++i) {
      const double proposal = std::max(row_of(layer.weight, layer.bias, i), 0.0);
      const double gate = 1 / (1 + std::exp(-row_of(layer.weight, layer.bias, x.size() + i)));
      next.push_back(gate * x[i] + (1 - gate) * proposal);
    }
    x = next;
  }
  std::vector<double> row;
  for (uint64_t i = 0; i < cnn.width; ++i) row.push_back(row_of(cnn.projection, cnn.bias, i));
  return row;
}

// Words of all lengths, of all bytes, in more than two batches with an odd rest.
std::vector<std::string> RandomWords(TestRandom& random) {
  std::vector<std::string> words = {"", std::string("\xff\x00\x80", 3), std::string(9, 'z'),
                                    std::string(10, 'z')};
  while (words.size() < 71) {
    std::string& word = words.emplace_back(words.size() % 13, ' ');
    for (char& c : word) c = static_cast<char>(128 * random.Signed());
  }
  return words;
}

TEST(CharacterTable, EqualsTheDefinition) {
  TestRandom random(7);
  const CharacterCnn cnn = RandomCnn(random);
  const std::vector<std::string> words = RandomWords(random);
  const auto table = CharacterTable(cnn, words, 1);
  ASSERT_TRUE(table.ok()) << table.status().message();
  ASSERT_EQ(table->size(), words.size() * cnn.width);
  for (size_t word = 0; word < words.size(); ++word) {
    const std::vector<double> row = RowByDefinition(cnn, words[word]);
    for (uint64_t i = 0; i < cnn.width; ++i) {
      // One rounding to float32.
      EXPECT_NEAR((*table)[word * cnn.width + i], row[i], 6e-8 * std::max(1.0, std::fabs(row[i])))
          << word;
    }
  }
  for (const size_t threads : {2, 3, 64}) {
    EXPECT_EQ(*CharacterTable(cnn, words, threads), *table) << threads;
  }
  EXPECT_TRUE(CharacterTable(cnn, {}, 2)->empty());
}

void ExpectRefused(const CharacterCnn& cnn, const std::string& part,
                   StatusCode code = KINGLET_INVALID_CHECKPOINT) {
  const Status status = CharacterTable(cnn, std::vector<std::string>{"ab", "c"}, 1).status();
  EXPECT_EQ(status.code(), code) << part;
  EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
}

TEST(CharacterTable, RefusesWhatDoesNotFit) {
  TestRandom random(3);
  const CharacterCnn whole = RandomCnn(random);
  const auto refused = [&whole](auto change, const std::string& part,
                                StatusCode code = KINGLET_INVALID_CHECKPOINT) {
    CharacterCnn cnn = whole;
    change(cnn);
    ExpectRefused(cnn, part, code);
  };
  refused([](auto& cnn) { cnn.filters.clear(); }, "filters: expected at least 1, found 0");
  refused([](auto& cnn) { cnn.filters[1].width = 0; }, "filter 1, width: expected 1 to 9, found 0");
  refused([](auto& cnn) { cnn.filters[1].width = 10; }, "filter 1, width");
  refused([](auto& cnn) { cnn.filters[0].channels = 0; }, "filter 0, channels");
  refused([](auto& cnn) { cnn.filters[0].channels = 1; }, "filter 0, weight");
  refused([](auto& cnn) { cnn.filters[2].bias.push_back(0); }, "filter 2, bias");
  refused([](auto& cnn) { cnn.vectors.pop_back(); }, "characters");
  refused([](auto& cnn) { cnn.vector_width = 0; }, "width of a character");
  refused([](auto& cnn) { cnn.highway[1].weight.pop_back(); }, "highway layer 1, weight");
  refused([](auto& cnn) { cnn.highway[0].bias.pop_back(); }, "highway layer 0, bias");
  refused([](auto& cnn) { cnn.projection.pop_back(); }, "projection, weight");
  refused([](auto& cnn) { cnn.bias.push_back(0); }, "projection, bias");
  refused([](auto& cnn) { cnn.longest = 0; }, "longest spelling");
  refused([](auto& cnn) { cnn.width = 0; }, "width of a word");
  refused([](auto& cnn) { cnn.bias[3] = std::numeric_limits<float>::quiet_NaN(); },
          "projection, bias");
  refused(
      [](auto& cnn) {
        cnn.vector_width = 1;
        cnn.vectors.assign(kCharacterSymbols, 0);
        cnn.filters = {{9, 1 << 16, std::vector<float>(9 << 16), std::vector<float>(1 << 16)}};
      },
      "filters", KINGLET_UNSUPPORTED);
  refused(
      [](auto& cnn) {
        cnn.highway.clear();
        std::fill(cnn.projection.begin(), cnn.projection.end(), 3e38F);
        std::fill(cnn.bias.begin(), cnn.bias.end(), 3e38F);
        for (CharacterFilter& filter : cnn.filters) {
          std::fill(filter.bias.begin(), filter.bias.end(), 100.0F);
        }
      },
      "word 0, feature 0: expected a finite float32, found infinity", KINGLET_NOT_FINITE);
}

}  // namespace
}  // namespace kinglet::character_table_test
