#include "runtime/ngrams/ngram_table.h"

#include <gtest/gtest.h>

#include "runtime/ngrams/ngram_model.h"
#include "tests/runtime/ngrams/ngram_draft.h"

namespace kinglet::ngram_table_test {
namespace {

TEST(NgramTable, EqualTablesGiveEqualBytes) {
  const NgramTable table = RandomNgrams(3, 50, 1).Table();
  for (const uint32_t bits : {0U, 8U}) {
    EXPECT_EQ(EncodeNgrams(table, bits).value(), EncodeNgrams(table, bits).value());
  }
}

// A small weight in the place of 0 would keep states apart.
TEST(NgramTable, QuantisingKeepsWeightsOfZeroAndSingleWords) {
  const NgramTable table = RandomNgrams(3, 300, 2).Table();
  const NgramEntries& twos = table.lengths[1];
  const auto model = NgramModel::FromBytes(EncodeNgrams(table, 2).value()).value();
  for (uint32_t id = 0; id < table.words.size(); ++id) {
    NgramState before, after;
    EXPECT_EQ(model->Score({}, id, before).log10, double{table.lengths[0].probabilities[id]});
    for (uint32_t i = table.lengths[0].children[id]; i < table.lengths[0].children[id + 1]; ++i) {
      model->Score(before, twos.words[i], after);
      const bool matters = twos.backoffs[i] != 0 || twos.children[i] != twos.children[i + 1];
      EXPECT_EQ(after.length == 2, matters) << i;
    }
  }
}

TEST(NgramTable, OtherNumbersOfBitsAreRefused) {
  for (const uint32_t bits : {1U, 17U}) {
    EXPECT_FALSE(EncodeNgrams(RandomNgrams(2, 3, 1).Table(), bits).ok());
  }
}

}  // namespace
}  // namespace kinglet::ngram_table_test
