#include "converters/texts/vocabulary_file.h"

#include <gtest/gtest.h>

#include "tests/converters/files.h"

namespace kinglet::vocabulary_file_test {
namespace {

using Strings = std::vector<std::string>;

Strings Words(std::string_view content, const std::string& suffix = "") {
  const TemporaryFile file(content, suffix);
  const Result<Strings> words = ReadVocabularyFile(file.path());
  if (words.ok()) return *words;
  ADD_FAILURE() << words.status().message();
  return {};
}

std::string Refusal(std::string_view content, const std::string& suffix = "") {
  const TemporaryFile file(content, suffix);
  const Result<Strings> words = ReadVocabularyFile(file.path());
  return words.ok() ? "accepted" : words.status().message().substr(file.path().size());
}

TEST(ReadVocabularyFile, ReadsOneWordPerLine) {
  EXPECT_EQ(Words("the\n<eos>\n,"), (Strings{"the", "<eos>", ","}));
  EXPECT_EQ(Words("the\n<eos>\n,\n"), (Strings{"the", "<eos>", ","}));
  // All bytes but the newline belong to the word.
  EXPECT_EQ(Words("a\r\n b \n\xff\n"), (Strings{"a\r", " b ", "\xff"}));
}

TEST(ReadVocabularyFile, NamesAnEmptyLine) {
  EXPECT_EQ(Refusal("a\n\nb\n"), ": line 2: expected a word, found an empty line");
  EXPECT_EQ(Refusal("a\n\n"), ": line 2: expected a word, found an empty line");
  EXPECT_EQ(Refusal("\n"), ": line 1: expected a word, found an empty line");
  EXPECT_EQ(Refusal(""), ": line 1: expected a word, found an empty file");
}

// fairseq's Dictionary: ids 0 to 3 are <s>, <pad>, </s>, <unk>; the count follows the last space.
TEST(ReadVocabularyFile, RecognisesFairseqsDictionary) {
  EXPECT_EQ(Words("the 38337\n, 33629\nmadeupword0000 0\n"),
            (Strings{"<s>", "<pad>", "</s>", "<unk>", "the", ",", "madeupword0000"}));
  EXPECT_EQ(Words("<unk> 5 #fairseq:overwrite\na b 3"),
            (Strings{"<s>", "<pad>", "</s>", "<unk>", "<unk>", "a b"}));
  // With one line of another form, the file is a list of words.
  EXPECT_EQ(Words("the 38337\nx\n"), (Strings{"the 38337", "x"}));
  EXPECT_EQ(Words("the 38337\n 7\n"), (Strings{"the 38337", " 7"}));
  EXPECT_EQ(Words("the -1\n"), (Strings{"the -1"}));
  EXPECT_EQ(Words("the \n"), (Strings{"the "}));
}

TEST(ReadVocabularyFile, ReadsArraysOfStrings) {
  const Strings expected = {"the", "café", "😀"};
  EXPECT_EQ(*ReadVocabularyFile(FixturePath("strings.npy")), expected);
  EXPECT_EQ(*ReadVocabularyFile(FixturePath("objects.npy")), expected);
  EXPECT_EQ(ReadVocabularyFile(FixturePath("i4.npy")).status().message(),
            FixturePath("i4.npy") +
                ": type: expected an array of strings of one dimension, found <i4 of 1 dimensions");
  EXPECT_EQ(ReadVocabularyFile(FixturePath("f8.npy")).status().code(), KINGLET_INVALID_CHECKPOINT);
}

// Under any file name; the words are those of tests/data/transformer-xl-variants.
TEST(ReadVocabularyFile, ReadsPickledVocabularies) {
  const std::string folder = KINGLET_TEST_DATA "/transformer-xl-variants/";
  EXPECT_EQ(Words("the\n", ".bin"), Strings{"the"});
  EXPECT_EQ(ReadVocabularyFile(folder + "hf-published/vocab.bin")->size(), 60u);
  const auto pickled = ReadVocabularyFile(folder + "hf-published-omitted-safetensors/vocab.pkl");
  ASSERT_TRUE(pickled.ok()) << pickled.status().message();
  EXPECT_EQ(pickled->front(), "<eos>");
  EXPECT_EQ(pickled->back(), "café");
  EXPECT_EQ(ReadVocabularyFile("/nowhere").status().code(), KINGLET_NOT_FOUND);
  EXPECT_EQ(ReadVocabularyFile("/nowhere.pkl").status().code(), KINGLET_NOT_FOUND);
}

}  // namespace
}  // namespace kinglet::vocabulary_file_test
