#include "converters/checkpoints/codes_file.h"

#include <gtest/gtest.h>

#include "tests/converters/checkpoints/container_files.h"

namespace kinglet::codes_file_test {
namespace {

using Codes = std::vector<int64_t>;

std::string Refusal(const std::string& text) { return RefusalOf(CodesTensors, text); }

void ExpectCodes(const std::string& text, const std::vector<uint64_t>& shape, const Codes& codes) {
  const TemporaryFile file(text, ".codes");
  const auto input = OpenInput(file.path());
  EXPECT_TRUE(LooksLikeCodes(*input));
  const Result<CheckpointTensors> weights = CodesTensors(input);
  ASSERT_TRUE(weights.ok()) << weights.status().message();
  ASSERT_EQ(weights->size(), 1U);
  const CheckpointTensor& tensor = weights->front();
  EXPECT_EQ(file.path(), testing::TempDir() + tensor.name + ".codes");
  EXPECT_EQ(tensor.shape, shape);
  EXPECT_EQ(ReadIntegers(tensor).value(), codes);
  EXPECT_EQ(ReadFinite(tensor).value(), std::vector<float>(codes.begin(), codes.end()));
}

TEST(Codes, AreALineForEachWord) {
  ExpectCodes("0 15 3\n7 7 7\n", {2, 3}, {0, 15, 3, 7, 7, 7});
  ExpectCodes("0 15 3\n7 7 7", {2, 3}, {0, 15, 3, 7, 7, 7});
  ExpectCodes("  0\t15  3 \r\n7 7 7\r\n", {2, 3}, {0, 15, 3, 7, 7, 7});
  ExpectCodes("4", {1, 1}, {4});
  ExpectCodes("4294967295 0\n", {1, 2}, {4294967295, 0});
}

TEST(Codes, LongerThanOnePieceOfReading) {
  std::string text;
  Codes codes;
  for (int64_t word = 0; word < 60'000; ++word) {
    for (int64_t part = 0; part < 5; ++part) {
      codes.push_back((word * 7919 + part * 104'729) % 65'536);
      text += std::to_string(codes.back()) + (part == 4 ? "\n" : " ");
    }
  }
  ASSERT_GT(text.size(), kPieceBytes);
  ExpectCodes(text, {60'000, 5}, codes);
}

TEST(Codes, RefusalsNameLineAndColumn) {
  EXPECT_EQ(Refusal("1 2\n3 x\n"),
            "codes: line 2, column 3: expected digits or blanks, found another character");
  EXPECT_EQ(Refusal("1 2\n1 -27\n"),
            "codes: line 2, column 6: expected an integer from 0, found -27");
  EXPECT_EQ(Refusal("-1"), "codes: line 1, column 3: expected an integer from 0, found -1");
  EXPECT_EQ(Refusal("1 -\n"),
            "codes: line 1, column 4: expected digits after the sign, found none");
  EXPECT_EQ(Refusal("1-2\n"),
            "codes: line 1, column 2: expected digits or blanks, found another character");
  EXPECT_EQ(Refusal("--2\n"),
            "codes: line 1, column 2: expected digits or blanks, found another character");
  EXPECT_EQ(Refusal("1 2\n3\n"),
            "codes: line 2, column 2: expected 2 integers as in line 1, found 1");
  EXPECT_EQ(Refusal("1 2\n3 4 5\n"),
            "codes: line 2, column 6: expected 2 integers as in line 1, found more");
  EXPECT_EQ(Refusal("1 2\n\n3 4\n"), "codes: line 2, column 1: expected integers, found none");
  EXPECT_EQ(Refusal("\n"), "codes: line 1, column 1: expected integers, found none");
  EXPECT_EQ(Refusal("1 4294967296\n"),
            "codes: line 1, column 12: expected an integer below 2^32, found a larger one");
  EXPECT_EQ(Refusal(std::string(5000, '9')).substr(0, 31), "codes: line 1, column 10: expec");
  EXPECT_NE(Refusal("1.5\n"), "accepted");
  EXPECT_NE(Refusal(std::string("1 2\0\n", 5)), "accepted");
}

TEST(Codes, AreRecognisedByContent) {
  // Recognised, so that reading it can say what is wrong.
  const TemporaryFile negative("-1 4\n");
  EXPECT_TRUE(LooksLikeCodes(*OpenInput(negative.path())));
  for (const std::string& content : {std::string(), std::string("the 3\n"), Fixture("zip.pt"),
                                     Fixture("f4.npy"), std::string("0.25 1\n")}) {
    const TemporaryFile file(content);
    EXPECT_FALSE(LooksLikeCodes(*OpenInput(file.path())));
  }
}

}  // namespace
}  // namespace kinglet::codes_file_test
