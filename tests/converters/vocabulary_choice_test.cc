#include "converters/vocabulary_choice.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/converters/files.h"

namespace kinglet::vocabulary_choice_test {
namespace {

using Words = std::vector<std::string>;

struct Chosen {
  Words words, notes;
  std::string error;
};

Chosen Choose(const ConvertOptions& options, uint32_t size, const std::string& family,
              std::optional<uint32_t> start = std::nullopt) {
  ModelDraft draft;
  draft.description.vocabulary_size = size;
  draft.description.start_token = start;
  Chosen chosen;
  chosen.error = ChooseVocabulary(options, family, draft, chosen.notes).message();
  chosen.words = draft.vocabulary;
  return chosen;
}

ConvertOptions WithFile(const TemporaryFile& file) {
  ConvertOptions options;
  options.vocabulary = file.path();
  return options;
}

TEST(ChooseVocabulary, NoneAndAFile) {
  EXPECT_EQ(Choose({}, 3, "awd-lstm").words, Words());
  const TemporaryFile file("<eos>\n<unk>\na\n");
  const Chosen chosen = Choose(WithFile(file), 3, "awd-lstm");
  EXPECT_EQ(chosen.words, (Words{"<eos>", "<unk>", "a"}));
  EXPECT_EQ(chosen.notes, Words());
  EXPECT_EQ(Choose(WithFile(file), 4, "awd-lstm").error,
            "vocabulary: " + file.path() +
                ": expected 4 words as the model has, found 3 (give the "
                "list of the model's own training)");
}

// Whose words "word count" are follows from the family, and of a recipe from how many there are.
TEST(ChooseVocabulary, FairseqsDictionaryIsForFairseqsModels) {
  const TemporaryFile file("<unk> 9\na 5\n");
  EXPECT_EQ(Choose(WithFile(file), 2, "awd-lstm").words, (Words{"<unk>", "a"}));
  EXPECT_NE(Choose(WithFile(file), 6, "awd-lstm").error, "");
  const TemporaryFile dictionary("b 9\na 5\n");
  const Words fairseq = {"<s>", "<pad>", "</s>", "<unk>", "b", "a"};
  EXPECT_EQ(Choose(WithFile(dictionary), 6, "fairseq", 2).words, fairseq);
  EXPECT_EQ(Choose(WithFile(dictionary), 6, "recipe", 2).words, fairseq);
  EXPECT_EQ(Choose(WithFile(dictionary), 2, "recipe", 1).words, (Words{"b", "a"}));
}

TEST(ChooseVocabulary, WarnsOnceAboutMissingWords) {
  const TemporaryFile plain("a\nb\n"), ends("</s>\na\n"), unknown("<unk>\na\n");
  const Words both = Choose(WithFile(plain), 2, "recipe").notes;
  ASSERT_EQ(both.size(), 2u);
  EXPECT_EQ(both[0],
            "the vocabulary has neither <eos> nor </s>: the end of a line in a text is no token");
  EXPECT_EQ(both[1],
            "the vocabulary has no <unk>: a text with a word that it lacks is refused; --ids reads "
            "texts as ids, --unknown names the word for unknown words");
  EXPECT_EQ(Choose(WithFile(ends), 2, "recipe").notes, Words{both[1]});
  EXPECT_EQ(Choose(WithFile(unknown), 2, "recipe").notes, Words{both[0]});
  // A model with a start token ends its texts by it.
  EXPECT_EQ(Choose(WithFile(plain), 2, "fairseq", 0).notes, Words{both[1]});
}

TEST(NoteCapitals, WordsThatNoLowerCasedTextHas) {
  ModelDraft draft;
  draft.vocabulary = {"<UNK>", "[MASK]", "the", "The", "@@PAD@@", "\u00C9t\u00E9"};
  Words notes;
  NoteCapitals(draft, notes);
  draft.tokenizer = TextTables{false, WordRule{WordRule::Rule::kSpaces}};
  NoteCapitals(draft, notes);
  EXPECT_EQ(notes, Words());
  draft.tokenizer->lower_case = true;
  NoteCapitals(draft, notes);
  EXPECT_EQ(notes, Words{"no lower-cased text has the vocabulary's words with capital letters, "
                         "\"The\" and 2 others"});
}

TEST(NotePieces, WithoutATokenizer) {
  ModelDraft draft;
  Words notes;
  const auto note = [&](const Words& vocabulary) {
    draft.vocabulary = vocabulary;
    EXPECT_TRUE(NotePieces(draft, notes).ok());
  };
  note({});
  note({"the", "<eos>"});
  EXPECT_EQ(notes, Words());
  note({"lo@@", "w", "<eos>"});
  EXPECT_EQ(notes, Words{"the vocabulary has pieces of words, marked by \"@@\": a text must be "
                         "split into them before; --tokenizer splits texts"});
  note({"\u2581the", "<eos>"});
  EXPECT_NE(notes.back().find("marked by \"\u2581\": "), std::string::npos) << notes.back();
  draft.tokenizer = TextTables{false, WordRule{WordRule::Rule::kSpaces}};
  note({"lo@@", "w", "<eos>"});
  EXPECT_EQ(notes.size(), 2u);
}

TEST(ChooseVocabulary, CharactersHaveANewline) {
  const TemporaryFile file(R"(["\n", " ", "<unk>"])");
  const Chosen chosen = Choose(WithFile(file), 3, "pytorch-examples");
  EXPECT_EQ(chosen.words, (Words{"\n", " ", "<unk>"}));
  EXPECT_EQ(chosen.notes, Words());
}

TEST(ChooseVocabulary, FromTextsInTheFamilysOrder) {
  const TemporaryFile train("b a <unk> a \n"), valid("c \n");
  ConvertOptions options;
  options.vocabulary_texts = {train.path(), valid.path()};
  EXPECT_EQ(Choose(options, 5, "pytorch-examples").words, (Words{"b", "a", "<unk>", "<eos>", "c"}));
  EXPECT_EQ(Choose(options, 5, "awd-lstm").words, (Words{"b", "a", "<unk>", "<eos>", "c"}));
  EXPECT_EQ(Choose(options, 5, "transformer-xl").words, (Words{"<eos>", "a", "b", "<unk>", "c"}));
  const Chosen counted = Choose(options, 4, "zaremba-tf");
  EXPECT_EQ(counted.words, (Words{"a", "<eos>", "<unk>", "b"}));
  EXPECT_EQ(counted.notes.size(), 1u);
  EXPECT_EQ(Choose(options, 9, "awd-lstm").error,
            "vocabulary: " + train.path() +
                ": expected 9 words as the model has, found 5 (give "
                "the texts of the model's own training)");
  for (const char* family : {"fairseq", "neurips-micronet", "recipe"}) {
    EXPECT_EQ(Choose(options, 5, family).error,
              std::string("convert: vocab-from: expected a model of awd-lstm, define-awd-lstm, "
                          "pytorch-examples, pytorch-examples-transformer, zaremba-tf, "
                          "transformer-xl, transfo-xl-hf, which "
                          "number words by their texts (--vocab reads a file), found ") +
                  family);
  }
}

}  // namespace
}  // namespace kinglet::vocabulary_choice_test
