#include "converters/texts/text_reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tests/converters/files.h"

namespace kinglet::text_reader_test {
namespace {

// A vocabulary, and its model's tokenizer.
struct Words {
  explicit Words(const std::vector<std::string>& list) : segments(*Vocabulary::Pack(list)) {
    vocabulary.emplace(*Vocabulary::FromSegments(static_cast<uint32_t>(list.size()), segments.words,
                                                 segments.ranks));
    text = *ModelText::Of(nullptr, *vocabulary);
  }
  Words(const std::vector<std::string>& list, WordRule::Rule rule, bool reads_backward = false)
      : Words(list) {
    text = *ModelText::Create({false, WordRule{rule}, reads_backward}, *vocabulary);
  }
  VocabularySegments segments;
  std::optional<Vocabulary> vocabulary;
  std::shared_ptr<const ModelText> text;
};

// Reads a text in pieces of `piece` bytes.
Result<TokenSequence> Read(const Words& words, std::string_view text, size_t piece = 1) {
  TextReader reader(*words.text, "my.txt");
  TokenSequence sequence;
  for (; !text.empty(); text.remove_prefix(std::min(piece, text.size()))) {
    KINGLET_RETURN_IF_ERROR(reader.Add(text.substr(0, piece), sequence));
  }
  KINGLET_RETURN_IF_ERROR(reader.Finish(sequence));
  return sequence;
}

using Ids = std::vector<uint32_t>;

const std::vector<std::string>& Four() {
  static const std::vector<std::string> words = {"the", "<eos>", "<unk>", "cat", ","};
  return words;
}

TEST(TextReader, UnknownWordsKeepTheirSpelling) {
  for (const size_t piece : {1, 3, 100}) {
    for (const Words& words : {Words(Four()), Words(Four(), WordRule::Rule::kSpaces)}) {
      const TokenSequence read = *Read(words, "the Katze cat\n\n <unk>\xC2\xA0h\xC3\xA9\n", piece);
      EXPECT_EQ(read.ids, (Ids{0, 2, 3, 1, 1, 2, 2, 1}));
      EXPECT_EQ(read.unknown, 2u);  // <unk> is a word like any other
      EXPECT_EQ(read.typed.At(1), "Katze");
      EXPECT_EQ(read.typed.At(6), "h\xC3\xA9");
      for (const uint64_t known : {0, 2, 3, 4, 5, 7, 8}) EXPECT_EQ(read.typed.At(known), "");
      EXPECT_EQ(read.size, (TextSize{5 + 3, 13 + 11 + 3, 13 + 9 + 3}));
      EXPECT_EQ(read.first_size, (TextSize{1, 3, 3}));
    }
  }
}

// Of a model that reads backward; the size of what comes first is that of the text's last token.
TEST(TextReader, TheLastTokenOfATextComesFirst) {
  for (const size_t piece : {1, 4, 100}) {
    const Words words({"the", "<unk>", "cat", "\n"}, WordRule::Rule::kSpaces, true);
    const TokenSequence read = *Read(words, "the Katze\nthe\ncat Hund", piece);
    EXPECT_EQ(read.ids, (Ids{3, 1, 2, 3, 0, 3, 1, 0}));
    EXPECT_EQ(read.unknown, 2u);
    EXPECT_EQ(read.typed.At(1), "Hund");
    EXPECT_EQ(read.typed.At(6), "Katze");
    EXPECT_EQ(read.size, (TextSize{5 + 3, 9 + 3 + 8 + 3, 9 + 3 + 8 + 3}));
    EXPECT_EQ(read.first_size, (TextSize{1, 1, 1}));
  }
  const Words words({"the", "<unk>", "cat"}, WordRule::Rule::kSpaces, true);
  TextReader reader(*words.text, "my.txt");
  TokenSequence lines;
  ASSERT_TRUE(reader.AddLine("the cat", lines).ok());
  EXPECT_EQ(lines.first_size, (TextSize{1, 3, 3}));
  ASSERT_TRUE(reader.AddLine("Hund the", lines).ok());
  EXPECT_EQ(lines.ids, (Ids{2, 0, 0, 1}));
  EXPECT_EQ(lines.typed.At(3), "Hund");
  ASSERT_TRUE(reader.AddText("the\ncat", lines).ok());
  EXPECT_EQ(lines.ids, (Ids{2, 0, 0, 1, 2, 0}));
}

TEST(TextReader, TokenizesLinesAsTheModelDoes) {
  const Words words(Four(), WordRule::Rule::kWikiText);
  const TokenSequence read = *Read(words, "\xEF\xBB\xBFthe cat,\r\nDr. Cat, the cat");
  EXPECT_EQ(read.ids, (Ids{0, 3, 4, 1, 2, 2, 4, 0, 3, 1}));
  EXPECT_EQ(read.typed.At(4), "Dr.");
  EXPECT_EQ(read.typed.At(5), "Cat");
  EXPECT_EQ(read.size, (TextSize{6 + 2, 8 + 16 + 2, 8 + 16 + 2}));
}

TEST(TextReader, LinesTakenApart) {
  for (const Words& words : {Words(Four()), Words(Four(), WordRule::Rule::kSpaces)}) {
    TextReader reader(*words.text, "my.txt");
    TokenSequence sequence;
    ASSERT_TRUE(reader.AddLine("\xEF\xBB\xBF the\tdog <eos>", sequence).ok());
    EXPECT_EQ(sequence.ids, (Ids{0, 2, 1}));
    ASSERT_TRUE(reader.EndLine(sequence).ok());
    ASSERT_TRUE(reader.AddLine("", sequence).ok());
    reader.NextLine();
    ASSERT_TRUE(reader.AddLine("cat", sequence).ok());
    EXPECT_EQ(sequence.ids, (Ids{0, 2, 1, 1, 3}));
    EXPECT_EQ(sequence.typed.At(1), "dog");
    EXPECT_EQ(sequence.size, (TextSize{4 + 1, 14 + 3 + 1, 14 + 3 + 1}));
  }
}

// Files of other systems, and files put together from several: the tokens of the text itself.
TEST(TextReader, MarksAndReturnsAreNoText) {
  using Rule = WordRule::Rule;
  const std::vector<std::string> letters = {"<eos>", "<unk>", "t", "h", "e"};
  for (const size_t piece : {1, 2, 3, 100}) {
    for (const Words& words : {Words(Four()), Words(Four(), Rule::kSpaces),
                               Words(Four(), Rule::kWikiText), Words(letters, Rule::kCharacters)}) {
      const TokenSequence plain = *Read(words, "the\ncat\n\nthe\n");
      const TokenSequence read = *Read(words,
                                       "\xEF\xBB\xBFthe\r\n\xEF\xBB\xBF"
                                       "cat\r\n\r\nthe\r",
                                       piece);
      EXPECT_EQ(read.ids, plain.ids);
      EXPECT_EQ(read.unknown, plain.unknown);
      EXPECT_EQ(read.size, plain.size);
    }
  }
}

// Some corpora are one line.
TEST(TextReader, ALongLineIsReadInParts) {
  std::string text, word = "cat ";
  while (text.size() < (size_t{5} << 19)) text += word;
  const Words words(Four());
  for (const size_t piece : {size_t{1} << 16, text.size()}) {
    const TokenSequence read = *Read(words, text + "\nthe", piece);
    ASSERT_EQ(read.ids.size(), text.size() / 4 + 3);
    EXPECT_EQ(std::count(read.ids.begin(), read.ids.end(), 3U),
              static_cast<ptrdiff_t>(text.size() / 4));
    EXPECT_EQ(read.ids[text.size() / 4], 1U);
    EXPECT_EQ(read.size, (TextSize{text.size() / 4 + 3, text.size() + 5, text.size() + 5}));
  }
}

// A mark in angle brackets is a space, unless it ends the line or stands alone where it begins.
TEST(TextReader, ALongLineOfPiecesHasTheSizeOfItsText) {
  const Words pieces({"<unk>", "lo", "w</w>", "er</w>", "</w>"}),
      letters({"<unk>", "l", "o", "w", "<space>"});
  for (const auto& [words, word, mark] :
       {std::tuple(&pieces, "lo w</w> lo er</w> ", "</w> "),
        std::tuple(&letters, "l o w <space> w o <space> ", "<space> ")}) {
    for (const bool begins : {false, true}) {
      std::string line = begins ? mark : "";
      while (line.size() < size_t{5} << 15) line += word;
      for (const std::string& ending : {std::string(), std::string("lo"), std::string("</w")}) {
        const TextSize size = SizeOfPieces(line + ending, PieceMarksOf(words->text->vocabulary()));
        for (const size_t piece : {size_t{1} << 12, size_t{100'003}, line.size()}) {
          size_t parts = 0;
          TextReader reader(*words->text, "my.txt", [&](TokenSequence&) {
            ++parts;
            return Status();
          });
          TokenSequence read, whole;
          for (size_t at = 0; at < line.size(); at += piece) {
            ASSERT_TRUE(reader.Add(std::string_view(line).substr(at, piece), read).ok());
          }
          ASSERT_TRUE(reader.Add(ending, read).ok());
          ASSERT_TRUE(reader.Finish(read).ok());
          EXPECT_EQ(read.size, size) << mark << begins << ending << piece;
          ASSERT_TRUE(reader.AddLine(line + ending, whole).ok());
          EXPECT_EQ(whole.size, size);
          EXPECT_EQ(parts > 0, !begins) << mark;
        }
      }
    }
  }
}

// fairseq's dictionaries and speech toolkits have other names for the end of a line.
TEST(TextReader, TheEndOfALine) {
  using List = std::vector<std::string>;
  const std::pair<List, Ids> cases[] = {{{"<s>", "<pad>", "</s>", "<unk>", "a"}, {4, 2}},
                                        {{"</s>", "<eos>", "a"}, {2, 1}},
                                        {{"<sos/eos>", "a"}, {1, 0}},
                                        {{"a", "\n"}, {0, 1}}};
  for (const auto& [list, ids] : cases) {
    EXPECT_EQ(Read(Words(list), "a\n")->ids, ids);
    EXPECT_EQ(Read(Words(list, WordRule::Rule::kSpaces), "a\n")->ids, ids);
  }
  EXPECT_EQ(Read(Words({"<unk>", "a"}), "a <eos>\n")->ids, (Ids{1, 0}));
  EXPECT_EQ(Read(Words({"<unk>", "a"}, WordRule::Rule::kSpaces), "a\n")->ids, (Ids{1}));
}

TEST(TextReader, WithoutUnkTheWordAndItsLineAreNamed) {
  const Status status = Read(Words({"the", "<eos>"}), "the\nd\x1bog").status();
  EXPECT_EQ(status.code(), KINGLET_UNKNOWN_WORD);
  EXPECT_EQ(status.message(),
            "my.txt: line 2: text: byte 0: expected a word of the vocabulary, which has no <unk>, "
            "found \"d?og\"");
  const Status split = Read(Words({"the", "<eos>"}, WordRule::Rule::kSpaces), "the\ndog").status();
  EXPECT_EQ(split.code(), KINGLET_UNKNOWN_WORD);
  EXPECT_TRUE(split.message().starts_with("my.txt: line 2: ")) << split.message();
}

TEST(TextReader, Files) {
  const TemporaryFile two(
      "\xEF\xBB\xBF"
      "the cat"),
      blank("\n"), empty("");
  const Words words(Four());
  EXPECT_EQ(ReadTextFile(two.path(), *words.text)->ids, (Ids{0, 3, 1}));
  EXPECT_EQ(ReadTextFile(two.path(), *words.text)->size, (TextSize{3, 8, 8}));
  EXPECT_EQ(ReadTextFile(blank.path(), *words.text)->first_size, kEndOfLineSize);
  EXPECT_EQ(ReadTextFile(empty.path(), *words.text)->size, TextSize{});
  EXPECT_TRUE(ReadTextFile(empty.path(), *words.text)->ids.empty());
  EXPECT_EQ(ReadTextFile(two.path() + ".none", *words.text).status().code(), KINGLET_NOT_FOUND);
}

}  // namespace
}  // namespace kinglet::text_reader_test
