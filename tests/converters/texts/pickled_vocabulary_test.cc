#include "converters/texts/pickled_vocabulary.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "tests/converters/files.h"

namespace kinglet::pickled_vocabulary_test {
namespace {

using Strings = std::vector<std::string>;

const std::string kVariants = KINGLET_TEST_DATA "/transformer-xl-variants/";

std::string Content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

Strings Expected(size_t count) {
  Strings words = {"<eos>"};
  for (size_t i = 1; i + 1 < count; ++i) words.push_back("w" + std::to_string(i));
  words.emplace_back("caf\xc3\xa9");
  return words;
}

// One item as a short text (protocol 2: BINUNICODE).
std::string Text(const std::string& text) {
  return "X" + std::string(1, static_cast<char>(text.size())) + std::string(3, '\0') + text;
}

std::string Refusal(const std::string& content) {
  const TemporaryFile file(content, ".pkl");
  const auto words = ReadPickledVocabulary(file.path());
  if (words.ok()) return "accepted";
  EXPECT_EQ(words.status().code(), KINGLET_INVALID_CHECKPOINT);
  return words.status().message().substr(file.path().size());
}

// Written by Python's pickle and by torch.save.
TEST(PickledVocabulary, AttributesOfTheObject) {
  EXPECT_EQ(ReadPickledVocabulary(kVariants + "hf-published-omitted-safetensors/vocab.pkl")->words,
            Expected(50));
  EXPECT_EQ(ReadPickledVocabulary(kVariants + "hf-published/vocab.bin")->words, Expected(60));
}

// vocabulary.Vocab itself, and inside data_utils.Corpus, whose other attributes are tensors.
TEST(PickledVocabulary, TheObjectAndTheCorpus) {
  const std::string state = "}" + Text("idx2sym") + "](" + Text("a") + Text("b") + "es";
  const std::string vocabulary = "cvocabulary\nVocab\n)\x81" + state + "b";
  const std::string corpus = "cdata_utils\nCorpus\n)\x81}(" + Text("dataset") + Text("wt103") +
                             Text("vocab") + vocabulary + "ub";
  for (const std::string& object : {state, vocabulary, corpus}) {
    const TemporaryFile file("\x80\x02" + object + ".");
    EXPECT_EQ(ReadPickledVocabulary(file.path())->words, (Strings{"a", "b"}));
  }
}

TEST(PickledVocabulary, IsRecognised) {
  const auto looks = [](const std::string& content, const std::string& suffix) {
    const TemporaryFile file(content, suffix);
    return LooksPickled(*InputFile::Open(file.path()));
  };
  EXPECT_TRUE(looks("anything", ".pkl"));
  EXPECT_TRUE(looks("\x80\x02}.", ""));
  EXPECT_TRUE(looks("ccopy_reg\n_reconstructor\np0\n", ""));
  EXPECT_FALSE(looks("ccopy_reg\nthe\n", ""));
  EXPECT_TRUE(looks(Content(kVariants + "hf-published/vocab.bin"), ""));
  EXPECT_FALSE(looks("the\nof\n", ".bin"));
  EXPECT_FALSE(looks("", ""));
}

// A list; a dict of words and ids in either direction; objects of other frameworks.
TEST(PickledVocabulary, OtherForms) {
  const std::string list = "](" + Text("a") + Text("b") + "e";
  const std::string ids = "}(" + Text("b") + "K\x01" + Text("a") + "K" + std::string(1, '\0') + "u";
  const std::string words = "}(K\x01" + Text("b") + "K" + std::string(1, '\0') + Text("a") + "u";
  const std::string itos = "ctorchtext.vocab\nVocab\n)\x81}" + Text("itos") + list + "sb";
  const std::string dictionary = "cdata\nCorpus\n)\x81}" + Text("dictionary") +
                                 "cdata\nDictionary\n)\x81}(" + Text("word2idx") + ids +
                                 Text("idx2word") + words + "ubsb";
  for (const std::string& object : {list, ids, words, itos, dictionary}) {
    const TemporaryFile file("\x80\x02" + object + ".");
    const auto read = ReadPickledVocabulary(file.path());
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_EQ(read->words, (Strings{"a", "b"}));
  }
  EXPECT_NE(Refusal("\x80\x02}(" + Text("a") + "K\x01" + Text("b") + "K\x02u.")
                .find("expected ids 0 to 1, each once, found others"),
            std::string::npos);
}

TEST(PickledVocabulary, NamesWhatIsMissing) {
  const std::string kHint = " (write the words as a JSON array of strings, by id)";
  EXPECT_EQ(Refusal("\x80\x02}."),
            ": vocabulary: expected a list of words, a dict of words and ids, or an object with "
            "'idx2sym', 'itos', 'idx2word' or 'idx2item', found dict" +
                kHint);
  EXPECT_EQ(Refusal("\x80\x02}" + Text("idx2sym") + "X\x01" + std::string(3, '\0') + "as."),
            ": idx2sym: expected at least one word, found str" + kHint);
  const auto with = [](const std::string& items) {
    return "\x80\x02}" + Text("idx2sym") + "](" + items + "es.";
  };
  EXPECT_EQ(Refusal(with("")), ": idx2sym: expected at least one word, found list" + kHint);
  EXPECT_EQ(Refusal(with(Text("a") + "K\x05")),
            ": entry 1 of idx2sym: expected a word, found int" + kHint);
  EXPECT_EQ(Refusal(with(Text(""))),
            ": entry 0 of idx2sym: expected a word, found an empty string" + kHint);
}

TEST(PickledVocabulary, TruncatedAndChangedFiles) {
  const std::string original = Content(kVariants + "hf-published-omitted-safetensors/vocab.pkl");
  for (size_t size = 0; size < original.size(); size += 7) {
    const TemporaryFile file(original.substr(0, size), ".pkl");
    EXPECT_FALSE(ReadPickledVocabulary(file.path()).ok()) << size;
  }
  for (size_t at = 0; at < original.size(); at += 3) {
    std::string changed = original;
    changed[at] = static_cast<char>(changed[at] ^ 0x44);
    const TemporaryFile file(changed, ".pkl");
    (void)ReadPickledVocabulary(file.path());
  }
}

// Objects that make_vocabularies.py pickled with the frameworks' classes.
TEST(PickledVocabulary, OfFrameworks) {
  for (const auto& [name, unknown] :
       {std::pair<const char*, std::optional<uint64_t>>{"torchtext_state.pkl", 1},
        {"transformer_xl_lm1b.pkl", 1},
        {"flair.pkl", std::nullopt},
        {"numpy_objects.pkl", std::nullopt},
        {"numpy_strings.pkl", std::nullopt},
        {"corpus.pt", std::nullopt}}) {
    const auto read = ReadPickledVocabulary(KINGLET_TEST_DATA "/vocabularies/" + std::string(name));
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_EQ(read->words, (Strings{"<eos>", "<UNK>", "caf\xc3\xa9"})) << name;
    EXPECT_EQ(read->unknown, unknown) << name;
  }
}

}  // namespace
}  // namespace kinglet::pickled_vocabulary_test
