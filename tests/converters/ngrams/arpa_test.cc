#include "converters/ngrams/arpa.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "tests/runtime/ngrams/ngram_draft.h"

namespace kinglet::arpa_test {
namespace {

class ArpaTest : public testing::Test {
 protected:
  ArpaTest() { std::filesystem::create_directories(folder_); }
  ~ArpaTest() override { std::filesystem::remove_all(folder_); }
  std::string Write(const std::string& text) const {
    const std::string path = (folder_ / "m.arpa").string();
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }
  // The message without the path before it.
  std::string Refusal(const std::string& text) const {
    const std::string path = Write(text);
    const auto read = ReadArpa(path);
    EXPECT_FALSE(read.ok()) << text;
    EXPECT_TRUE(read.status().message().starts_with(path)) << read.status().message();
    return read.status().message().substr(path.size());
  }
  const std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("arpa_test." + std::to_string(::getpid()));
};

std::string NumberOf(float value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.9g", double{value});
  return text;
}

// N-grams in another order than the file's.
std::string ArpaOf(const NgramDraft& draft, const std::string& end = "\n",
                   const std::string& blank = " ") {
  std::string counts, sections;
  for (size_t length = 1; length <= draft.order; ++length) {
    size_t count = 0;
    sections += end + "\\" + std::to_string(length) + "-grams:" + end;
    for (auto at = draft.ngrams.rbegin(); at != draft.ngrams.rend(); ++at) {
      const auto& [words, weights] = *at;
      if (words.size() != length) continue;
      ++count;
      sections += NumberOf(weights.probability) + "\t" + words[0];
      for (size_t i = 1; i < words.size(); ++i) sections += blank + words[i];
      sections += (weights.backoff == 0 ? "" : "\t" + NumberOf(weights.backoff)) + end;
    }
    counts += "ngram " + std::to_string(length) + "=" + std::to_string(count) + end;
  }
  return "made by hand" + end + end + "\\data\\" + end + counts + sections + end + "\\end\\" + end;
}

TEST_F(ArpaTest, TablesAreThoseOfTheNgrams) {
  for (const size_t order : {1U, 2U, 3U, 5U, 8U}) {
    const NgramDraft draft = RandomNgrams(order, 20, static_cast<uint32_t>(order));
    const auto expected = EncodeNgrams(draft.Table(), 0).value();
    for (const char* end : {"\n", "\r\n"}) {
      for (const char* blank : {" ", "\t"}) {
        const auto read = ReadArpa(Write(ArpaOf(draft, end, blank)));
        ASSERT_TRUE(read.ok()) << read.status().message();
        EXPECT_EQ(EncodeNgrams(*read, 0).value(), expected);
        EXPECT_FALSE(read->adds_unknown);
      }
    }
  }
}

TEST_F(ArpaTest, WithoutUnknownWordsThereIsKenlms) {
  NgramDraft draft = RandomNgrams(2, 20, 1);
  std::erase_if(draft.ngrams, [](const auto& ngram) {
    return std::count(ngram.first.begin(), ngram.first.end(), "<unk>") > 0;
  });
  const std::string path = Write(ArpaOf(draft));
  EXPECT_TRUE(ReadArpa(path).value().adds_unknown);
  const auto model = OpenNgrams(path).value();
  NgramState state;
  EXPECT_EQ(model->Score({}, model->IdOf("never"), state).log10, -100);
  EXPECT_EQ(state, NgramState());
}

TEST_F(ArpaTest, FilesAndTheirArpaFilesAreOneModel) {
  const NgramDraft draft = RandomNgrams(3, 20, 2);
  const auto bytes = EncodeNgrams(draft.Table(), 0).value();
  const std::string file(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const std::string digest = OpenNgrams(Write(ArpaOf(draft))).value()->digest();
  EXPECT_EQ(OpenNgrams(Write(file)).value()->digest(), digest);
  EXPECT_FALSE(OpenNgrams(Write("")).ok());
  EXPECT_FALSE(OpenNgrams((folder_ / "none").string()).ok());
}

const std::string kWhole =
    "\\data\\\nngram 1=4\nngram 2=2\n\n\\1-grams:\n-1\t<unk>\n-1\t<s>\t-0.5\n-1\t</s>\n"
    "-1\ta\t-0.5\n\n\\2-grams:\n-1\t<s> a\n-1\ta </s>\n\n\\end\\\n";

// The text with one part replaced.
std::string Changed(const std::string& part, const std::string& other) {
  std::string text = kWhole;
  const size_t at = text.find(part);
  EXPECT_NE(at, text.npos) << part;
  return text.replace(at, part.size(), other);
}

TEST_F(ArpaTest, RefusalsNameTheLine) {
  EXPECT_TRUE(ReadArpa(Write(kWhole)).ok());
  const std::pair<std::string, const char*> kCases[] = {
      {"",
       ": line 1: expected \\data\\, with which n-grams begin, found the end of the file (copy it "
       "again; it is truncated)"},
      {"iARPA\n" + kWhole,
       ": line 1: expected \\data\\, found \"iARPA\", a format of IRSTLM (its program compile-lm "
       "writes an ARPA file with --text=yes)"},
      {Changed("ngram 1=4", "ngram 1=x"),
       ": line 2: expected \"ngram N=COUNT\" or \\1-grams:, found \"ngram 1=x\""},
      {Changed("ngram 2=", "ngram 3="),
       ": line 3: expected the count of n-grams of length 2, found length 3"},
      {Changed("ngram 1=4", "ngram 1=5"),
       ": line 11: expected 1-gram 5 of 5, found \"\\2-grams:\""},
      {Changed("ngram 1=4", "ngram 1=3"),
       ": line 9: expected no more 1-grams than the 3 that \\data\\ counts, then \\2-grams:, found "
       "\"-1?a?-0.5\""},
      {Changed("ngram 2=2", "ngram 2=4294967295"),
       ": line 3: expected at most 4294967294 n-grams of a length, found 4294967295"},
      {Changed("-1\ta </s>\n\n\\end\\\n", ""),
       ": line 13: expected 2-gram 2 of 2, found the end of the file (copy it again; it is "
       "truncated)"},
      {Changed("\\end\\", "\\3-grams:"), ": line 15: expected \\end\\, found \"\\3-grams:\""},
      {Changed("-1\ta\t", "0.5\ta\t"),
       ": line 9: expected a finite log10 probability of at most 0, found \"0.5\""},
      {Changed("-1\ta\t", "-inf\ta\t"),
       ": line 9: expected a finite log10 probability of at most 0, found \"-inf\" (of an "
       "impossible n-gram: -99)"},
      {Changed("a\t-0.5", "a\tnan"), ": line 9: expected a finite back-off weight, found \"nan\""},
      {Changed("a </s>", "a </s>\t-0.5"),
       ": line 13: expected no back-off weight of the longest n-grams, found \"-0.5\""},
      {Changed("a </s>", "a </s> a a"),
       ": line 13: expected a probability, 2 words, a weight, found more, from \"a\" on"},
      {Changed("-1\ta </s>", "-1\ta"),
       ": line 13: expected 2 words after the probability, found \"-1?a\""},
      {Changed("-1\ta </s>", "-1\ta b"), ": line 13: expected words of \\1-grams:, found \"b\""},
      {Changed("-1\ta </s>", "-1\t<s> a"),
       ": line 13: expected each n-gram once, found the one of line 12 again"},
      {Changed("-1\t<unk>", "-1\ta"), ": line 9: expected each word once, found \"a\" again"},
      {Changed("<s>\t", "b\t"),
       ": line 9: expected <s> among the words, found none (train the model on sentences with "
       "their marks)"},
      {"\\data\\\nngram 1=3\nngram 2=0\nngram 3=1\n\\1-grams:\n-1 <s>\n-1 </s>\n-1 a\n"
       "\\2-grams:\n\\3-grams:\n-1 <s> a </s>\n\\end\\\n",
       ": line 11: expected words whose beginning is a 2-gram, found none for \"<s> a\" (add it, "
       "or train the model again without removing it)"},
      {"\\data\\\n" + std::string(size_t{3} << 20, 'x'),
       ": line 2: expected a line of at most 1 MiB, found a longer one"},
  };
  for (const auto& [text, message] : kCases) EXPECT_EQ(Refusal(text), message);
  const std::string kenlm =
      "mmap lm http://kheafield.com/code format version 5\n" + std::string(80, '\0');
  EXPECT_NE(Refusal(kenlm).find("a binary file of KenLM, whose layout depends on KenLM's version "
                                "(name the ARPA file that it was made from)"),
            std::string::npos);
}

// Any change of a byte, and any end, gives a refusal or a model whose queries end.
TEST_F(ArpaTest, DamagedFilesAreHarmless) {
  size_t refused = 0;
  for (size_t at = 0; at < kWhole.size(); ++at) {
    for (const char* other : {"", "0", "\xff"}) {
      std::string text = kWhole;
      const auto model = OpenNgrams(Write(text.replace(at, 1, other)));
      if (model.ok()) (*model)->ScoreSentence("a <s> a a </s>");
      refused += model.ok() ? 0 : 1;
    }
    const std::string truncated = kWhole.substr(0, at);
    EXPECT_EQ(ReadArpa(Write(truncated)).ok(), at + 1 == kWhole.size()) << at;
  }
  EXPECT_GT(refused, kWhole.size());
}

// SRILM's pruning leaves n-grams whose words but the first are no n-gram.
TEST_F(ArpaTest, WordsButTheFirstMayBeNoNgram) {
  const auto model =
      OpenNgrams(Write("\\data\\\nngram 1=4\nngram 2=1\nngram 3=1\n\\1-grams:\n-1 <s> -0.25\n"
                       "-2 </s>\n-3 a -0.5\n-99 <UNK>\n\\2-grams:\n-4 <s> a -0.125\n"
                       "\\3-grams:\n-5 <s> a </s>\n\\end\\\n"))
          .value();
  EXPECT_DOUBLE_EQ(model->ScoreSentence("a").log10, -4 - 5);
  EXPECT_DOUBLE_EQ(model->ScoreSentence("a a").log10, -4 - 0.125 - 0.5 - 3 - 0.5 - 2);
  EXPECT_DOUBLE_EQ(model->ScoreSentence("never").log10, -0.25 - 99 - 2);
}

}  // namespace
}  // namespace kinglet::arpa_test
