#include "converters/pair_file.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/converters/files.h"

namespace kinglet {
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
      {"1 ||| 2\n", "at least one target id behind the start token 2"},
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

}  // namespace
}  // namespace kinglet
