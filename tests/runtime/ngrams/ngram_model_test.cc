#include "runtime/ngrams/ngram_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <random>

#include "format/digest.h"
#include "format/little_endian.h"
#include "tests/runtime/ngrams/ngram_draft.h"
#include "tests/support/temporary_folder.h"

namespace kinglet::ngram_model_test {
namespace {

std::vector<std::byte> FileOf(const NgramDraft& draft, uint32_t bits = 0) {
  return EncodeNgrams(draft.Table(), bits).value();
}

void Repair(std::vector<std::byte>& file) {
  const Digest128 digest = DigestOf(std::span(file).subspan(kNgramDigestedFrom));
  StoreLittle(digest.low, file.data() + kNgramDigestAt);
  StoreLittle(digest.high, file.data() + kNgramDigestAt + 8);
}

// Random words after <s>, some of them unknown.
NgramWords RandomText(std::mt19937& random, size_t words) {
  NgramWords text = {"<s>"};
  for (size_t i = random() % 12; i > 0; --i) {
    text.push_back(random() % 9 == 0 ? "<unk>" : "w" + std::to_string(random() % words));
  }
  text.push_back("</s>");
  return text;
}

// The length of the longest n-gram at the text's end.
size_t LongestAtEnd(const NgramDraft& draft, const NgramWords& text) {
  size_t length = std::min(text.size(), draft.order);
  while (draft.ngrams.count({text.end() - static_cast<std::ptrdiff_t>(length), text.end()}) == 0) {
    --length;
  }
  return length;
}

TEST(NgramModel, ScoresAreThoseOfTheDefinition) {
  std::mt19937 random(1);
  for (size_t order = 1; order <= 8; ++order) {
    for (const size_t words : {1, 5, 60}) {
      const NgramDraft draft = RandomNgrams(order, words, static_cast<uint32_t>(order + words));
      const auto model = NgramModel::FromBytes(FileOf(draft)).value();
      EXPECT_EQ(model->header().order, order);
      for (int i = 0; i < 200; ++i) {
        const NgramWords text = RandomText(random, words);
        NgramState state = model->SentenceBegin();
        NgramWords before = {"<s>"};
        double sum = 0;
        std::string line;
        for (size_t at = 1; at < text.size(); ++at) {
          before.push_back(text[at]);
          std::vector<double> all(model->header().counts[0]);
          model->ScoreAll(state, all);
          const double expected = all[model->IdOf(text[at])];
          const NgramScore score = model->Score(state, model->IdOf(text[at]), state);
          EXPECT_NEAR(score.log10, draft.Log10AtEnd(before), 1e-6);
          EXPECT_EQ(score.log10, expected);
          EXPECT_EQ(score.length, LongestAtEnd(draft, before));
          EXPECT_TRUE(model->Accepts(state));
          sum += score.log10;
          if (at + 1 < text.size()) line += (text[at] == "<unk>" ? "never" : text[at]) + " \t";
        }
        const NgramSentenceScore sentence = model->ScoreSentence(line);
        EXPECT_NEAR(sentence.log10, sum, 1e-9);
        EXPECT_EQ(sentence.words, text.size() - 1);
      }
    }
  }
}

// A state contains nothing that cannot change a later score: histories often have equal states.
TEST(NgramModel, EqualStatesHaveEqualFutures) {
  const auto model = NgramModel::FromBytes(FileOf(RandomNgrams(4, 6, 3))).value();
  const auto words = static_cast<uint32_t>(model->header().counts[0]);
  std::vector<std::pair<NgramState, std::vector<double>>> seen;
  std::mt19937 random(2);
  size_t equal = 0;
  for (int i = 0; i < 300; ++i) {
    NgramState state = model->SentenceBegin();
    for (int j = 0; j < 3; ++j) model->Score(state, static_cast<uint32_t>(random() % words), state);
    std::vector<double> future;
    for (uint32_t a = 0; a < words; ++a) {
      NgramState after, last;
      future.push_back(model->Score(state, a, after).log10);
      for (uint32_t b = 0; b < words; ++b) future.push_back(model->Score(after, b, last).log10);
    }
    for (const auto& [other, others] : seen) {
      if (!(other == state)) continue;
      EXPECT_EQ(others, future);
      ++equal;
    }
    seen.emplace_back(state, std::move(future));
  }
  EXPECT_GT(equal, 100U);
}

TEST(NgramModel, StatesOfOtherModelsAreToldWhereTheyAreDangerous) {
  const auto model = NgramModel::FromBytes(FileOf(RandomNgrams(3, 5, 1))).value();
  NgramState state;
  EXPECT_TRUE(model->Accepts(state));
  state.length = 3;
  EXPECT_FALSE(model->Accepts(state));
  state.length = 1;
  state.nodes[0] = static_cast<uint32_t>(model->header().counts[0]);
  EXPECT_FALSE(model->Accepts(state));
  state.nodes[0] = 0;
  EXPECT_TRUE(model->Accepts(state));
  state.nodes[1] = 0;
  EXPECT_FALSE(model->Accepts(state));
}

TEST(NgramModel, WordsAreFound) {
  const auto model = NgramModel::FromBytes(FileOf(RandomNgrams(2, 30, 1))).value();
  for (uint32_t id = 0; id < model->header().counts[0]; ++id) {
    EXPECT_EQ(model->IdOf(model->WordOf(id)), id);
  }
  for (const char* word : {"", "w", "w300", "zz", "\xff"}) {
    EXPECT_EQ(model->IdOf(word), model->unknown_word());
  }
  EXPECT_EQ(model->WordOf(model->end_word()), "</s>");
}

TEST(NgramModel, QuantisedScoresAreNear) {
  const NgramDraft draft = RandomNgrams(3, 200, 4);
  const auto exact = NgramModel::FromBytes(FileOf(draft)).value();
  double before = 1e9;
  for (const uint32_t bits : {2U, 4U, 8U, 12U, 16U}) {
    const auto model = NgramModel::FromBytes(FileOf(draft, bits)).value();
    std::mt19937 random(5);
    double error = 0;
    for (int i = 0; i < 200; ++i) {
      std::string line;
      for (const std::string& word : RandomText(random, 200)) line += word + " ";
      error += std::abs(model->ScoreSentence(line).log10 - exact->ScoreSentence(line).log10);
    }
    EXPECT_LT(error, bits < 12 ? before / 2 : 1e-2) << bits;
    before = error;
  }
}

// The digest finds every flipped bit; with its own digest such a file is refused or harmless.
TEST(NgramModel, EveryFlippedBitIsFoundAndNoneIsDangerous) {
  for (const uint32_t bits : {0U, 3U}) {
    const std::vector<std::byte> file = FileOf(RandomNgrams(3, 4, 6), bits);
    size_t opened = 0;
    for (size_t bit = 0; bit < file.size() * 8; ++bit) {
      std::vector<std::byte> changed = file;
      changed[bit / 8] ^= std::byte(1U << (bit % 8));
      EXPECT_FALSE(NgramModel::FromBytes(changed).ok()) << bit;
      Repair(changed);
      const auto model = NgramModel::FromBytes(changed);
      if (!model.ok()) continue;
      ++opened;
      for (const char* line : {"", "w0 w1 w2 w3 w0", "w3 w3 <unk> w2 w1", "<s> </s> w0"}) {
        EXPECT_TRUE(std::isfinite((*model)->ScoreSentence(line).log10)) << bit;
      }
    }
    EXPECT_GT(opened, 0U);
  }
}

TEST(NgramModel, TruncatedFilesAndOthersAreRefused) {
  const std::vector<std::byte> file = FileOf(RandomNgrams(3, 4, 7));
  for (size_t size = 0; size < file.size(); ++size) {
    const auto model = NgramModel::FromBytes(std::span(file).first(size));
    ASSERT_FALSE(model.ok()) << size;
    EXPECT_EQ(model.status().code(), KINGLET_CORRUPT) << size;
  }
  const TemporaryFolder folder;
  const std::string path =
      folder.Write("model", {reinterpret_cast<const char*>(file.data()), file.size()});
  EXPECT_EQ(NgramModel::Open(path).value()->digest(),
            NgramModel::FromBytes(file).value()->digest());
  std::filesystem::remove(path);
  EXPECT_EQ(NgramModel::Open(path).status().code(), KINGLET_NOT_FOUND);
  EXPECT_EQ(NgramModel::Open("/").status().code(), KINGLET_IO_ERROR);
}

}  // namespace
}  // namespace kinglet::ngram_model_test
