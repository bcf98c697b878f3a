#include "converters/texts/vocabulary_file.h"

#include <gtest/gtest.h>

#include "tests/converters/files.h"
#include "tests/converters/packed_texts.h"

namespace kinglet::vocabulary_file_test {
namespace {

using Strings = std::vector<std::string>;

Strings Words(std::string_view content, const std::string& suffix = "",
              const VocabularyUse& use = {}) {
  const TemporaryFile file(content, suffix);
  const Result<VocabularyFile> vocabulary = ReadVocabularyFile(file.path(), use);
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
  EXPECT_EQ(Words(" \n[\n"), (Strings{" ", "["}));
}

// What an editor of another system adds is dropped.
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
  EXPECT_EQ(Words("\xEF\xBB\xBFthe 3\r\nof 2\r\n", "", {WordNumbers::kFairseq, 6}),
            (Strings{"<s>", "<pad>", "</s>", "<unk>", "the", "of"}));
  EXPECT_EQ(Words("the\r\nof\n"), (Strings{"the", "of"}));
  EXPECT_EQ(Words("the"), Strings{"the"});
  EXPECT_EQ(notes("the\nof\n"), Strings());
  EXPECT_EQ(notes("\xEF\xBB\xBFthe\r\n"),
            (Strings{": begins with a byte order mark, which is taken off",
                     ": every line ends with a carriage return, which is taken off"}));
  const std::string refused = Refusal(std::string("\xff\xfet\0", 4));
  EXPECT_NE(refused.find("found text in UTF-16 (`iconv"), std::string::npos) << refused;
}

TEST(ReadVocabularyFile, UnpacksWhatIsPacked) {
  // A packed file is read as text: one line, which is no word.
  for (const std::string& packed : {PackedByGzip(), PackedByZstd()}) {
    const std::string refused = Refusal(packed);
    EXPECT_NE(refused.find("found \"the cat\""), std::string::npos) << refused;
  }
}

TEST(ReadVocabularyFile, ReadsJson) {
  EXPECT_EQ(Words(R"(["\n", " ", "a"])"), (Strings{"\n", " ", "a"}));
  EXPECT_EQ(Words("\xEF\xBB\xBF [\"a\"]\n", ".json"), Strings{"a"});
  // Words that begin like JSON.
  EXPECT_EQ(Words("[PAD]\n[UNK]\n"), (Strings{"[PAD]", "[UNK]"}));
  EXPECT_EQ(Words("{\n[\n"), (Strings{"{", "["}));
  EXPECT_EQ(Words(R"({"b": 1, "a": 0})"), (Strings{"a", "b"}));
  EXPECT_EQ(Refusal("[PAD]\n", ".json"),
            ": byte 2: expected a JSON array of strings, found no JSON (write one with json.dump)");
}

// fairseq numbers the words of its dictionary from 4 on; others number those of "word count" from
// 0.
TEST(ReadVocabularyFile, TheModelSaysWhoseDictionary) {
  const Strings plain = {"the", ","}, fairseq = {"<s>", "<pad>", "</s>", "<unk>", "the", ","};
  const std::string list = "the 38337\n, 33629\n";
  EXPECT_EQ(Words(list), plain);
  EXPECT_EQ(Words(list, "", {WordNumbers::kByLine, 6}), plain);
  EXPECT_EQ(Words(list, "", {WordNumbers::kFairseq, 2}), fairseq);
  EXPECT_EQ(Words(list, "", {WordNumbers::kEither, 6}), fairseq);
  EXPECT_EQ(Words(list, "", {WordNumbers::kEither, 2}), plain);
  EXPECT_EQ(Words(list, "", {WordNumbers::kEither, 5}), plain);
  // The flag is fairseq's; its own words with ids are no dictionary of fairseq's.
  EXPECT_EQ(Words("the 9 #fairseq:overwrite\n, 3\n"), fairseq);
  EXPECT_EQ(Words("<s> 0\n<pad> 1\n</s> 2\n<unk> 3\n, 5\nthe 4\n", "", {WordNumbers::kFairseq, 6}),
            fairseq);
  EXPECT_EQ(Words("<s>\n<pad>\n</s>\n<unk>\nthe\n,\n", "", {WordNumbers::kFairseq, 6}), fairseq);
}

TEST(ReadVocabularyFile, DisambiguationSymbolsAreNoWords) {
  const std::string list = "<eps> 0\na 1\n#0 2\n#1 3\n";
  EXPECT_EQ(Words(list, "", {WordNumbers::kByLine, 2}), (Strings{"<eps>", "a"}));
  EXPECT_EQ(Words(list, "", {WordNumbers::kByLine, 4}), (Strings{"<eps>", "a", "#0", "#1"}));
  EXPECT_EQ(Words(list).size(), 4u);
}

// torchtext and others number a repeated word by its last place.
TEST(ReadVocabularyFile, ARepeatedWordHasTheLastId) {
  EXPECT_EQ(Words("a\nb\na\nc\na\n"), (Strings{"a (id 0)", "b", "a (id 2)", "c", "a"}));
  const TemporaryFile file("a\nb\na\nb\n");
  const auto read = ReadVocabularyFile(file.path());
  ASSERT_EQ(read->notes.size(), 1u);
  EXPECT_NE(read->notes[0].find(": \"a\" and 1 other words stand more than once"),
            std::string::npos);
}

// Of Transformer-XL's lm1b, fastai, torchtext, and of no known program.
TEST(ReadVocabularyFile, TheWordForUnknownWords) {
  for (const char* name : {"<UNK>", "xxunk", "_unk_", "<oov>"}) {
    EXPECT_EQ(Words(std::string("a\n") + name + "\n"), (Strings{"a", "<unk>"})) << name;
  }
  EXPECT_EQ(Words("<unk>\nxxunk\n"), (Strings{"<unk>", "xxunk"}));
  EXPECT_EQ(Words("UNK\na\n"), (Strings{"UNK", "a"}));
  std::vector<std::string> notes;
  Strings words = {"a", "UNK", "<unk>"};
  ASSERT_TRUE(NameUnknownWord("UNK", words, notes).ok());
  EXPECT_EQ(words, (Strings{"a", "<unk>", "<unk> (id 2)"}));
  EXPECT_EQ(notes, Strings{"the word for unknown words, \"UNK\" (id 1), is named <unk>"});
  EXPECT_TRUE(NameUnknownWord("<unk>", words, notes).ok());
  EXPECT_TRUE(NameUnknownWord("<UNK>", words, notes).ok());  // named as the file was read
  EXPECT_EQ(NameUnknownWord("b", words, notes).message(),
            "convert: unknown: expected a word of the vocabulary, found \"b\" (`kinglet predict` "
            "prints words)");
}

TEST(ReadVocabularyFile, EmptyLinesAtTheEnd) {
  EXPECT_EQ(Words("a\nb\n\n\n"), (Strings{"a", "b"}));
  EXPECT_NE(Refusal("a\n\nb\n").find("line 2: expected a word, found an empty line"),
            std::string::npos);
}

TEST(ReadVocabularyFile, NamesUnreadableWords) {
  EXPECT_EQ(Refusal("the\ncaf\xe9\n"),
            ": line 2: expected a text in UTF-8, found \"caf?\" in another encoding (of Latin-1, "
            "`iconv -f latin1 -t utf-8` makes UTF-8)");
}

TEST(ReadVocabularyFile, ReadsArraysOfStrings) {
  const Strings expected = {"the", "café", "😀"};
  EXPECT_EQ(ReadVocabularyFile(FixturePath("strings.npy"))->words, expected);
  EXPECT_EQ(ReadVocabularyFile(FixturePath("objects.npy"))->words, expected);
  EXPECT_EQ(ReadVocabularyFile(FixturePath("i4.npy")).status().message(),
            FixturePath("i4.npy") +
                ": type: expected an array of strings of one dimension, found <i4 of 1 dimensions "
                "(write one word a line, or a "
                "JSON array of strings: docs/CHECKPOINTS.md#vocabularies)");
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
