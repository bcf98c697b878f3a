#include "converters/texts/pair_file.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/session.h"
#include "tests/converters/files.h"
#include "tests/support/translation_builder.h"

namespace kinglet::pair_file_test {
namespace {

TEST(ReadPairs, SourcesAndTargetsBehindTheirStart) {
  const TemporaryFile file("0 0 5 ||| 2 7 0 3\n  9|||2\t3 \n4294967295 ||| 2 4294967295");
  const auto pairs = ReadPairs(file.path(), 2);
  ASSERT_TRUE(pairs.ok()) << pairs.status().message();
  ASSERT_EQ(pairs->size(), 3u);
  EXPECT_EQ((*pairs)[0].source, (std::vector<uint32_t>{0, 0, 5}));
  EXPECT_EQ((*pairs)[0].target, (std::vector<uint32_t>{7, 0, 3}));
  EXPECT_EQ((*pairs)[1].source, (std::vector<uint32_t>{9}));
  EXPECT_EQ((*pairs)[1].target, (std::vector<uint32_t>{3}));
  EXPECT_EQ((*pairs)[2].target, (std::vector<uint32_t>{4294967295}));
}

TEST(ReadPairs, WhatIsNoPairIsRefusedWithItsLine) {
  const struct {
    const char* text;
    const char* message;
  } refused[] = {
      {"", "at least one line"},
      {"1 ||| 2 3\n\n", "line 2: expected source ids ||| target ids, found ''"},
      {"1 2 3\n", "line 1: expected source ids ||| target ids, found '1 2 3'"},
      {"||| 2 3\n", "line 1: expected at least one source id"},
      {"1 |||\n", "begins with the start token 2, found none"},
      {"1 ||| 3 2\n", "begins with the start token 2, found 3"},
      {"1 ||| 2\n", "at least one target id after the start token 2"},
      {"1 x ||| 2 3\n", "line 1, source: byte 2"},
      {"1 ||| 2 3 ||| 4\n", "line 1, target: byte 5"},
      {"1 ||| 2 -3\n", "line 1, target: byte 3"},
      {"4294967296 ||| 2 3\n", "line 1, source: byte 0"},
  };
  for (const auto& one : refused) {
    const TemporaryFile file(one.text);
    const Status status = ReadPairs(file.path(), 2).status();
    EXPECT_EQ(status.code(), KINGLET_INVALID_ARGUMENT) << one.text;
    EXPECT_NE(status.message().find(one.message), std::string::npos) << status.message();
  }
  EXPECT_EQ(ReadPairs("/nowhere", 2).status().code(), KINGLET_NOT_FOUND);
}

// The tokens that are fed and the expected tokens, one step apart.
TEST(FeedPair, ExpectsEachWordAfterItsSteps) {
  const auto model = Model::FromBytes(*SerialiseModel(TinyTranslation()), {.backend = "ref"});
  const auto session = *Session::Create(*model);
  std::vector<uint32_t> expected;
  std::vector<uint64_t> positions;
  const SentencePair pair{{1, 12}, {5, 16, 3}};
  const auto record = [&](uint32_t id) {
    expected.push_back(id);
    positions.push_back(session->position());
    return Status();
  };
  for (int i = 0; i < 2; ++i) {  // the second time on a used session
    expected.clear();
    positions.clear();
    ASSERT_TRUE(FeedPair(pair, *session, record).ok());
    EXPECT_EQ(expected, pair.target);
    EXPECT_EQ(positions, (std::vector<uint64_t>{1, 2, 3}));
  }
  const Status stopped(KINGLET_CANCELLED, "enough");
  EXPECT_EQ(FeedPair(pair, *session, [&](uint32_t) { return stopped; }).code(), KINGLET_CANCELLED);
  EXPECT_EQ(session->position(), 1u);
  const SentencePair longer{{1}, std::vector<uint32_t>(10, 3)};
  EXPECT_NE(FeedPair(longer, *session, record).message().find("at most the decoder's 9 positions"),
            std::string::npos);
  EXPECT_EQ(InSentence(7, stopped).message(), "sentence 7: enough");
}

}  // namespace
}  // namespace kinglet::pair_file_test
