#include "converters/texts/corpus_vocabulary.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/converters/files.h"

namespace kinglet::corpus_vocabulary_test {
namespace {

using Words = std::vector<std::string>;

Words From(const std::vector<std::string>& texts, WordOrder order) {
  std::vector<std::unique_ptr<TemporaryFile>> files;
  std::vector<std::string> paths;
  for (const std::string& text : texts) {
    files.push_back(std::make_unique<TemporaryFile>(text));
    paths.push_back(files.back()->path());
  }
  const auto words = VocabularyFromTexts(paths, order);
  if (words.ok()) return *words;
  return {words.status().message().substr(0, words.status().message().find(':'))};
}

// Dictionary.add_word for line.split() + ['<eos>'], text after text.
TEST(VocabularyFromTexts, InOrderOfAppearance) {
  EXPECT_EQ(From({" the cat \n the mat\n", "a dog\nthe end\n"}, WordOrder::kFirstAppearance),
            (Words{"the", "cat", "<eos>", "mat", "a", "dog", "end"}));
  EXPECT_EQ(From({"\n", "x"}, WordOrder::kFirstAppearance), (Words{"<eos>", "x"}));
}

// special = ['<eos>'], then Counter.most_common, whose ties keep their order.
TEST(VocabularyFromTexts, ByCount) {
  EXPECT_EQ(From({"b a c a\nb\n", "c c d\n"}, WordOrder::kByCount),
            (Words{"<eos>", "c", "b", "a", "d"}));
}

// sorted(Counter(text.replace("\n", "<eos>").split()).items(), key=lambda x: (-x[1], x[0]))
TEST(VocabularyFromTexts, ByCountThenCharacters) {
  EXPECT_EQ(From({" b a c a \n b \n", "never counted\n"}, WordOrder::kByCountThenCharacters),
            (Words{"<eos>", "a", "b", "c"}));
  // Without a space at its end, a line runs together with the next one.
  EXPECT_EQ(From({"b a\na\n"}, WordOrder::kByCountThenCharacters), (Words{"a<eos>a<eos>", "b"}));
  EXPECT_EQ(From({"z \xC3\xA9 Z \xF0\x9F\x98\x80 \xEF\xBD\x81"}, WordOrder::kByCountThenCharacters),
            (Words{"Z", "z", "\xC3\xA9", "\xEF\xBD\x81", "\xF0\x9F\x98\x80"}));
}

TEST(VocabularyFromTexts, Refusals) {
  for (const WordOrder order :
       {WordOrder::kFirstAppearance, WordOrder::kByCount, WordOrder::kByCountThenCharacters}) {
    EXPECT_EQ(From({""}, order), Words{"vocabulary"});
    EXPECT_EQ(VocabularyFromTexts({"/nowhere"}, order).status().code(), KINGLET_NOT_FOUND);
  }
}

}  // namespace
}  // namespace kinglet::corpus_vocabulary_test
