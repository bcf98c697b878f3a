#include "converters/texts/masked_file.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "runtime/model.h"
#include "runtime/session.h"
#include "tests/converters/opened.h"
#include "tests/converters/synthetic.h"
#include "tests/support/masked_builder.h"

namespace kinglet::masked_file_test {
namespace {

using Ids = std::vector<uint32_t>;

TEST(ReadMaskedIds, TextsWithTheirSegments) {
  const TemporaryFolder folder;
  const std::string ids = folder.Write("ids", "2 5 3\n\n2 7 3 8 3\n");
  const std::string segments = folder.Write("segments", "0 0 0\n\n0 0 0 1 1\n");
  const auto texts = ReadMaskedIds(ids, segments);
  ASSERT_TRUE(texts.ok()) << texts.status().message();
  ASSERT_EQ(texts->size(), 3u);
  EXPECT_EQ((*texts)[0].ids, (Ids{2, 5, 3}));
  EXPECT_TRUE((*texts)[1].ids.empty());
  EXPECT_EQ((*texts)[2].segments, (Ids{0, 0, 0, 1, 1}));
  const auto without = ReadMaskedIds(ids, "");
  ASSERT_TRUE(without.ok());
  EXPECT_TRUE((*without)[2].segments.empty());
}

TEST(ReadMaskedIds, FilesOfOtherLengthsAreRefusedByLine) {
  const TemporaryFolder folder;
  const std::string ids = folder.Write("ids", "2 5 3\n2 7 3\n");
  const auto refusal = [&](const std::string& segments) {
    return ReadMaskedIds(ids, folder.Write("segments", segments)).status();
  };
  EXPECT_NE(refusal("0 0 0\n").message().find("lines: expected 2, as in"), std::string::npos);
  EXPECT_NE(refusal("0 0 0\n0 0\n").message().find("line 2: expected 3 segments, found 2"),
            std::string::npos);
  EXPECT_EQ(refusal("0 0 0\n0 0 x\n").code(), KINGLET_INVALID_ARGUMENT);
  EXPECT_EQ(ReadMaskedIds(folder.Path("none"), "").status().code(), KINGLET_NOT_FOUND);
}

class ReadMaskedLinesTest : public testing::Test {
 protected:
  Result<MaskedLines> Read(const std::string& text, uint32_t window) const {
    WordPieceTables pieces;
    pieces.pieces = vocabulary_;
    TextTables tables;
    tables.method = pieces;
    return ReadMaskedLines(folder_.Write("text", text), tables, vocabulary_, window);
  }
  const std::vector<std::string> vocabulary_ = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]",
                                                "one",   "two",   "three", "##s"};
  TemporaryFolder folder_;
};

TEST_F(ReadMaskedLinesTest, LinesAndPairs) {
  const auto read = Read("one twos\n\n  \r\nthree ||| one [MASK]\r\n", 9);
  ASSERT_TRUE(read.ok()) << read.status().message();
  ASSERT_EQ(read->texts.size(), 2u);
  EXPECT_EQ(read->texts[0].ids, (Ids{2, 5, 6, 8, 3}));
  EXPECT_EQ(read->texts[1].ids, (Ids{2, 7, 3, 5, 4, 3}));
  EXPECT_EQ(read->texts[1].segments, (Ids{0, 0, 0, 1, 1, 1}));
  EXPECT_EQ(read->shortened, 0u);
}

TEST_F(ReadMaskedLinesTest, LongLinesKeepTheirBeginningAndTheirEnd) {
  const auto read = Read("one two three one\none\nthree ||| two one\n", 4);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->shortened, 2u);
  EXPECT_EQ(read->texts[0].ids, (Ids{2, 5, 6, 3}));
  EXPECT_EQ(read->texts[1].ids, (Ids{2, 5, 3}));
  EXPECT_EQ(read->texts[2].ids, (Ids{2, 7, 3, 3}));
  EXPECT_EQ(read->texts[2].segments, (Ids{0, 0, 0, 1}));
}

TEST_F(ReadMaskedLinesTest, NothingToRead) {
  EXPECT_EQ(Read("", 4).status().code(), KINGLET_INVALID_ARGUMENT);
  EXPECT_NE(Read("\n \n", 4).status().message().find("at least one word"), std::string::npos);
}

TEST(WithMasks, EverySeventhScoredToken) {
  const MaskTokens words = {4, 2, 3};
  MaskedText text;
  text.ids = {2, 10, 11, 12, 3, 13, 14, 15, 16, 17, 3};
  EXPECT_EQ(WithMasks(text, words, 0).ids, (Ids{2, 4, 11, 12, 3, 13, 14, 15, 16, 4, 3})) << "0";
  EXPECT_EQ(WithMasks(text, words, 8).ids, (Ids{2, 10, 4, 12, 3, 13, 14, 15, 16, 17, 3})) << "8";
  EXPECT_TRUE(WithMasks({}, words, 3).ids.empty());
}

TEST(ReadMasked, EachTextAsItIsAndWithMasks) {
  const auto model = Opened(TinyMasked());
  const auto session = *Session::Create(model);
  std::vector<Ids> seen;
  const std::vector<MaskedText> texts = {{{2, 9, 3}, {}}, {{2, 8, 7, 3}, {}}};
  const auto note = [&](const MaskedText& text) {
    seen.push_back(text.ids);
    return Status();
  };
  ASSERT_TRUE(ReadMasked(texts, *session, note).ok());
  EXPECT_EQ(seen, (std::vector<Ids>{{2, 9, 3}, {2, 4, 3}, {2, 8, 7, 3}, {2, 8, 4, 3}}));
  const std::vector<MaskedText> foreign = {{{2, 9, 3}, {}}, {{2, 99, 3}, {}}};
  const Status status = ReadMasked(foreign, *session, note);
  EXPECT_EQ(status.code(), KINGLET_ID_OUT_OF_RANGE);
  EXPECT_TRUE(status.message().starts_with("text 1: ")) << status.message();
  // A model that predicts no words has no masks.
  seen.clear();
  const auto pooled = *Session::Create(Opened(TinyMasked({.words = false})));
  ASSERT_TRUE(ReadMasked(texts, *pooled, note).ok());
  EXPECT_EQ(seen.size(), 2u);
}

}  // namespace
}  // namespace kinglet::masked_file_test
