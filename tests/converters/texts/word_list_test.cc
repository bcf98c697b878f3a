#include "converters/texts/word_list.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace kinglet::word_list_test {
namespace {

using Strings = std::vector<std::string>;
using Form = WordList::Form;

WordList Read(std::string_view text) {
  const Result<WordList> list = ReadWordList("f", text);
  if (list.ok()) return *list;
  ADD_FAILURE() << list.status().message();
  return {};
}

std::string Refusal(std::string_view text) {
  const Result<WordList> list = ReadWordList("f", text);
  if (list.ok()) return "read";
  EXPECT_EQ(list.status().code(), KINGLET_INVALID_CHECKPOINT);
  EXPECT_TRUE(list.status().message().ends_with(")")) << list.status().message();
  return list.status().message();
}

void ExpectRefused(std::string_view text, const std::string& part) {
  EXPECT_NE(Refusal(text).find(part), std::string::npos) << Refusal(text);
}

TEST(WordList, WordsAlone) {
  EXPECT_EQ(Read("the\n<eos>\n,").words, (Strings{"the", "<eos>", ","}));
  // One character may be a blank. U+00A0 is not a blank; letters with marks do not change.
  EXPECT_EQ(Read(" \na\n\t\n").words, (Strings{" ", "a", "\t"}));
  EXPECT_EQ(Read("a\xC2\xA0"
                 "b\ncafe\xCC\x81\n")
                .words,
            (Strings{"a\xC2\xA0"
                     "b",
                     "cafe\xCC\x81"}));
  EXPECT_EQ(Read("a,b\n1,000\nc\n").words, (Strings{"a,b", "1,000", "c"}));
  EXPECT_TRUE(Read("a\nb\n").notes.empty());
}

TEST(WordList, EndsOfLines) {
  const WordList mixed = Read("a\r\nb\nc\r\n");
  EXPECT_EQ(mixed.words, (Strings{"a", "b", "c"}));
  EXPECT_EQ(Read("a\r\nb\nc\nd\r\n").notes,
            Strings{"f: 2 lines end with a carriage return, which is taken off"});
  EXPECT_EQ(Read("a \nb\t\nc  \n").words, (Strings{"a", "b", "c"}));
  ExpectRefused("a \nb\n", "line 1: expected a word without blanks, or a word and a number");
  ExpectRefused("a\nb \n", "line 2: expected a word without blanks, as the lines before, found");
  ExpectRefused("a\rb\n", "line 1: expected one word, found a carriage return in the line");
  ExpectRefused("a\n\nb\n", "line 2: expected a word, found an empty line");
  for (const char* text : {"a\n\r\n", "a\n\n"}) {
    EXPECT_EQ(Read(text).words, Strings{"a"});
    EXPECT_EQ(Read(text).notes.back(), "f: ends with 1 empty line, which is omitted");
  }
  ExpectRefused("", "line 1: expected a word, found an empty file");
}

// The ids decide, in any order; between the columns are blanks or a comma.
TEST(WordList, WordsWithIds) {
  for (const char* text : {"<eps> 0\nb 2\na 1\n#0 3\n", "<eps>\t0\nb  \t 2\na\t1\n#0 3 \n",
                           "0 <eps>\n2 b\n1 a\n3 #0\n", "<eps>,0\nb,2\na,1\n#0,3\n",
                           "3,#0\n0,<eps>\n1,\"a\"\n2,b\n"}) {
    const WordList list = Read(text);
    EXPECT_EQ(list.form, Form::kIds) << text;
    EXPECT_EQ(list.words, (Strings{"<eps>", "a", "b", "#0"})) << text;
    EXPECT_EQ(list.notes, Strings{"f: all lines have a word and its id, which decides the order"});
  }
  EXPECT_EQ(Read("a 0\n").form, Form::kIds);
  EXPECT_EQ(Read("0 0\n1 1\n").words, (Strings{"0", "1"}));
}

TEST(WordList, WordsWithCountsOrScores) {
  for (const char* text : {"the 90\nof 89\n, 3\n", "the\t7\nof\t1\n,\t7\n",
                           "the,9\nof,8\n\",\",7\n", "the 3\nof 2\n, 1\n"}) {
    const WordList list = Read(text);
    EXPECT_EQ(list.form, Form::kCounts) << text;
    EXPECT_EQ(list.words, (Strings{"the", "of", ","})) << text;
  }
  // SentencePiece's .vocab of a unigram model and of byte pairs.
  for (const char* text :
       {"<unk>\t0\n\xE2\x96\x81the\t-3.25\ns\t-3.5\n", "<unk>\t0\n\xE2\x96\x81the\t-0\ns\t-1\n"}) {
    const WordList list = Read(text);
    EXPECT_EQ(list.form, Form::kScores) << text;
    EXPECT_EQ(list.words, (Strings{"<unk>", "\xE2\x96\x81the", "s"})) << text;
  }
}

TEST(WordList, LinesInQuotes) {
  EXPECT_EQ(Read("\"the\"\n\",\"\n\"a\"\"b\"\n").words, (Strings{"the", ",", "a\"b"}));
  // Words that contain quotes.
  EXPECT_EQ(Read("\"the\"\n\"\nof\n").words, (Strings{"\"the\"", "\"", "of"}));
  EXPECT_EQ(Read("\"a\"b\"\n").words, Strings{"\"a\"b\""});
}

// Lists that two forms fit, or no form, are refused.
TEST(WordList, OtherLinesAreRefused) {
  ExpectRefused("c 2\nb 1\na 0\n", "found all lines fit \"word id\" and \"word count\"");
  ExpectRefused("1 0\n0 5\n", "found all lines fit \"id word\" and \"word number\"");
  ExpectRefused("a 0\nb 1\nc 3\n", "line 1: expected ids 0 to 2 in all lines, or counts");
  ExpectRefused("a 1\nc 3\nb 2\n", "line 1: expected ids 0 to 2 in all lines, or counts");
  ExpectRefused("1 a\n2 b\n", "line 1: expected ids 0 to 1 in all lines, found");
  ExpectRefused("a 9\nb 8\nc\n", "line 3: expected a word and a number, as the lines before");
  ExpectRefused("0 a\n1\n", "line 2: expected a number and a word, as the lines before");
  ExpectRefused("a 0 1\nb 1 1\n", "line 1: expected a word without blanks");
  ExpectRefused("New York\n", "line 1: expected a word without blanks");
  ExpectRefused("a\nNew\tYork\n", "line 2: expected a word without blanks");
  ExpectRefused(" a\n", "line 1: expected a word without blanks");
  ExpectRefused("word,count\nthe,9\nof,8\n",
                "line 1: expected a word and a number, as in the other");
  ExpectRefused("a\n\xE9t\xE9\n", "line 2: expected a text in UTF-8");
  for (const char* white : {"\v", "\f", "\x1c", "\x1f"}) {
    ExpectRefused(std::string("a\nNew") + white + "York\n", "line 2: expected a word without");
  }
}

// Marks of other formats in every line: Python's lists, YAML, tables of other separators.
TEST(WordList, MarksInEveryLineAreRefused) {
  for (const std::string mark : {"'", "`", ",", ";", ":", "|", "\xC2\xA0", "\xE3\x80\x80"}) {
    for (const std::string& text : {"the" + mark + "\nof" + mark + "\n",
                                    mark + "the" + mark + "\n" + mark + "of" + mark + "\n",
                                    "the" + mark + "9\nof" + mark + "7\n"}) {
      if (mark == "," && text.ends_with("7\n")) continue;  // a table of counts
      ExpectRefused(text, "line 1: expected words, not \"");
    }
  }
  ExpectRefused("\"0\",\"the\"\n\"1\",\"of\"\n", "line 1: expected words, not \"");
  ExpectRefused("the: 0\nof: 1\n", "line 1: expected words, not \":\" in every line");
  EXPECT_EQ(Read("don't\nof\n").words, (Strings{"don't", "of"}));
  EXPECT_EQ(Read("'\n,\n;\n").words, (Strings{"'", ",", ";"}));
  EXPECT_EQ(Read("n't\n's\n").words, (Strings{"n't", "'s"}));
  EXPECT_EQ(Read("the|DT\nof|IN\n").words, (Strings{"the|DT", "of|IN"}));
  EXPECT_EQ(Read("Note:60 9\nNote:62 4\n").words, (Strings{"Note:60", "Note:62"}));
}

TEST(WordList, FairseqDictionaries) {
  const auto read = [](std::string_view text) { return ReadFairseqList("f", text); };
  // The words that fairseq's Dictionary reads: rstrip, rsplit(" ", 1), any int.
  EXPECT_EQ(read("the 38337\n, -0\nmadeupword0000 0 \na b 3\n1234 +2\nx  1")->words,
            (Strings{"<s>", "<pad>", "</s>", "<unk>", "the", ",", "madeupword0000", "a b", "1234",
                     "x "}));
  EXPECT_EQ(read("the 10\ncat 5\nthe 3 #fairseq:overwrite\nthe 1 #fairseq:overwrite \n")->words,
            (Strings{"<s>", "<pad>", "</s>", "<unk>", "the (id 4)", "cat", "the (id 6)", "the"}));
  const auto moved = read(
      "<s> 0 #fairseq:overwrite\n</s> 0 #fairseq:overwrite\n<pad> 0 #fairseq:overwrite\n"
      "<unk> 0 #fairseq:overwrite\nthe 10\n");
  ASSERT_TRUE(moved.ok()) << moved.status().message();
  EXPECT_EQ(moved->words, (Strings{"<s> (id 0)", "<pad> (id 1)", "</s>", "<unk>", "<s>",
                                   "</s> (id 5)", "<pad>", "<unk> (id 7)", "the"}));
  EXPECT_EQ(moved->notes,
            (Strings{"f: texts with the word </s> are read with id 2, by fairseq with id 5; --ids "
                     "reads texts as ids",
                     "f: texts with the word <unk> are read with id 3, by fairseq with id 7; --ids "
                     "reads texts as ids"}));
  EXPECT_EQ(
      read("the 10\nthe 3\n").status().message(),
      "f: line 2: expected a word of its own, or \" #fairseq:overwrite\", found \"the\" again, "
      "as word 4 (give the dict.txt of the model's own training)");
  for (const char* bad : {"the\n", " 7\n", "the x\n", "the 1.5\n", "the 1\n\n", "the\t1\n"}) {
    EXPECT_FALSE(read(bad).ok()) << bad;
    EXPECT_FALSE(LooksLikeFairseqList(bad)) << bad;
  }
  EXPECT_TRUE(LooksLikeFairseqList("the -1\nof 3 #fairseq:overwrite\n"));
  EXPECT_TRUE(HasFairseqFlag("x\nof 3 #fairseq:overwrite \n"));
  EXPECT_FALSE(HasFairseqFlag("#fairseq:overwrite\n"));
}

TEST(WordList, Parts) {
  EXPECT_EQ(WordsByIds("b 1\na 0\n"), (Strings{"a", "b"}));
  for (const char* text : {"", "a\n", "a 1\n", "a b 0\n", "a 0\n\n", "a 0\nb 0\n", "3 4 5\n"}) {
    EXPECT_EQ(WordsByIds(text), std::nullopt) << text;
  }
  Strings words = {"a", "#x", "#0", "#12"};
  EXPECT_EQ(DropDisambiguation(3, words), 1u);
  EXPECT_EQ(DropDisambiguation(0, words), 1u);
  EXPECT_EQ(words, (Strings{"a", "#x"}));
}

}  // namespace
}  // namespace kinglet::word_list_test
