#include "converters/texts/vocabulary_file.h"

#include <gtest/gtest.h>

#include "tests/converters/files.h"
#include "tests/converters/packed_texts.h"

namespace kinglet::vocabulary_file_test {
namespace {

using Strings = std::vector<std::string>;

Strings Words(std::string_view content, const std::string& suffix = "") {
  const TemporaryFile file(content, suffix);
  const Result<VocabularyFile> vocabulary = ReadVocabularyFile(file.path());
  if (vocabulary.ok()) return vocabulary->words;
  ADD_FAILURE() << vocabulary.status().message();
  return {};
}

std::string Refusal(std::string_view content, const std::string& suffix = "") {
  const TemporaryFile file(content, suffix);
  const Result<VocabularyFile> words = ReadVocabularyFile(file.path());
  return words.ok() ? "accepted" : words.status().message().substr(file.path().size());
}

TEST(ReadVocabularyFile, ReadsOneWordPerLine) {
  EXPECT_EQ(Words("the\n<eos>\n,"), (Strings{"the", "<eos>", ","}));
  EXPECT_EQ(Words("the\n<eos>\n,\n"), (Strings{"the", "<eos>", ","}));
  // All bytes but the newline belong to the word.
  EXPECT_EQ(Words("a\r\n b \n\xff\n"), (Strings{"a\r", " b ", "\xff"}));
}

// What an editor of another system adds, and what was taken off.
TEST(ReadVocabularyFile, TakesMarksAndReturnsOff) {
  const auto notes = [](const std::string& content) {
    const TemporaryFile file(content);
    Strings found = ReadVocabularyFile(file.path())->notes;
    for (std::string& note : found) note = note.substr(file.path().size());
    return found;
  };
  EXPECT_EQ(Words("\xEF\xBB\xBFthe\n\xEF\xBB\xBF\n"), (Strings{"the", "\xEF\xBB\xBF"}));
  EXPECT_EQ(Words("the\r\nof\r\n"), (Strings{"the", "of"}));
  EXPECT_EQ(Words("the\r\nof"), (Strings{"the", "of"}));
  EXPECT_EQ(Words("\xEF\xBB\xBFthe 3\r\nof 2\r\n"),
            (Strings{"<s>", "<pad>", "</s>", "<unk>", "the", "of"}));
  EXPECT_EQ(Words("the\r\nof\n"), (Strings{"the\r", "of"}));
  EXPECT_EQ(Words("the"), Strings{"the"});
  EXPECT_EQ(notes("the\r\nof\n"), Strings());
  EXPECT_EQ(notes("\xEF\xBB\xBFthe\r\n"),
            (Strings{": begins with a byte order mark, which is taken off",
                     ": every line ends with a carriage return, which is taken off"}));
  const std::string refused = Refusal(std::string("\xff\xfet\0", 4));
  EXPECT_NE(refused.find("found text in UTF-16 (`iconv"), std::string::npos) << refused;
}

TEST(ReadVocabularyFile, UnpacksWhatIsPacked) {
  EXPECT_EQ(Words(PackedByGzip()), Strings{"the cat"});
  EXPECT_EQ(Words(PackedByZstd()), Strings{"the cat"});
}

TEST(ReadVocabularyFile, ReadsJson) {
  EXPECT_EQ(Words(R"(["\n", " ", "a"])"), (Strings{"\n", " ", "a"}));
  EXPECT_EQ(Words("\xEF\xBB\xBF [\"a\"]\n", ".json"), Strings{"a"});
  // Words that begin like JSON.
  EXPECT_EQ(Words("[PAD]\n[UNK]\n"), (Strings{"[PAD]", "[UNK]"}));
  EXPECT_EQ(Words(" \n[\n"), (Strings{" ", "["}));
  EXPECT_EQ(Refusal("[PAD]\n", ".json"),
            ": byte 2: expected a JSON array of strings, found no JSON");
}

TEST(ReadVocabularyFile, NamesAnEmptyLine) {
  const std::string kHint = " (a JSON array of strings can hold a newline)";
  EXPECT_EQ(Refusal("a\n\nb\n"), ": line 2: expected a word, found an empty line" + kHint);
  EXPECT_EQ(Refusal("a\n\n"), ": line 2: expected a word, found an empty line" + kHint);
  EXPECT_EQ(Refusal("\n"), ": line 1: expected a word, found an empty line" + kHint);
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
  EXPECT_EQ(ReadVocabularyFile(FixturePath("strings.npy"))->words, expected);
  EXPECT_EQ(ReadVocabularyFile(FixturePath("objects.npy"))->words, expected);
  EXPECT_EQ(ReadVocabularyFile(FixturePath("i4.npy")).status().message(),
            FixturePath("i4.npy") +
                ": type: expected an array of strings of one dimension, found <i4 of 1 dimensions");
  EXPECT_EQ(ReadVocabularyFile(FixturePath("f8.npy")).status().code(), KINGLET_INVALID_CHECKPOINT);
}

// Under any file name; the words are those of tests/data/transformer-xl-variants.
TEST(ReadVocabularyFile, ReadsPickledVocabularies) {
  const std::string folder = KINGLET_TEST_DATA "/transformer-xl-variants/";
  EXPECT_EQ(Words("the\n", ".bin"), Strings{"the"});
  EXPECT_EQ(ReadVocabularyFile(folder + "hf-published/vocab.bin")->words.size(), 60u);
  const auto pickled = ReadVocabularyFile(folder + "hf-published-omitted-safetensors/vocab.pkl");
  ASSERT_TRUE(pickled.ok()) << pickled.status().message();
  EXPECT_EQ(pickled->words.front(), "<eos>");
  EXPECT_EQ(pickled->words.back(), "café");
  EXPECT_EQ(ReadVocabularyFile("/nowhere").status().code(), KINGLET_NOT_FOUND);
  EXPECT_EQ(ReadVocabularyFile("/nowhere.pkl").status().code(), KINGLET_NOT_FOUND);
}

}  // namespace
}  // namespace kinglet::vocabulary_file_test
