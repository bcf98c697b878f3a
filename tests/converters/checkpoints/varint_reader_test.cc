#include "converters/checkpoints/varint_reader.h"

#include <gtest/gtest.h>

#include <string>

namespace kinglet::varint_reader_test {
namespace {

using std::string_view_literals::operator""sv;

TEST(VarintReader, ReadsFrontToBack) {
  VarintReader reader(
      "\x00\x7f\x80\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
      "abc\x04\x03\x02\x01\x08\x07\x06\x05\x04\x03\x02\x01"sv);
  EXPECT_EQ(reader.Varint(), 0u);
  EXPECT_EQ(reader.Varint(), 127u);
  EXPECT_EQ(reader.Varint(), 128u);
  EXPECT_EQ(reader.Varint(), UINT64_MAX);
  EXPECT_EQ(reader.Bytes(3), "abc");
  EXPECT_EQ(reader.Fixed32(), 0x01020304u);
  EXPECT_EQ(reader.left(), 8u);
  EXPECT_EQ(reader.Fixed64(), 0x0102030405060708u);
  EXPECT_TRUE(reader.empty());
  EXPECT_EQ(reader.Bytes(0), "");
  EXPECT_FALSE(reader.Varint());
}

TEST(VarintReader, GivesNoneBeyondTheEnd) {
  EXPECT_FALSE(VarintReader("\x80\x80"sv).Varint());
  EXPECT_FALSE(VarintReader("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"sv).Varint());
  EXPECT_FALSE(VarintReader("\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01"sv).Varint());
  EXPECT_FALSE(VarintReader("abc"sv).Fixed32());
  EXPECT_FALSE(VarintReader("abcdefg"sv).Fixed64());
  EXPECT_FALSE(VarintReader("abc"sv).Bytes(UINT64_MAX));
}

TEST(ProtoFields, ReadsEveryWireType) {
  const auto fields = ProtoFields("\x08\x96\x01\x12\x02hi\x1d\x01\0\0\0\x21\x02\0\0\0\0\0\0\0"sv);
  ASSERT_TRUE(fields);
  ASSERT_EQ(fields->size(), 4u);
  EXPECT_EQ((*fields)[0].number, 1u);
  EXPECT_EQ((*fields)[0].value, 150u);
  EXPECT_EQ((*fields)[1].number, 2u);
  EXPECT_EQ((*fields)[1].bytes, "hi");
  EXPECT_EQ((*fields)[2].value, 1u);
  EXPECT_EQ((*fields)[3].value, 2u);
  EXPECT_TRUE(ProtoFields("")->empty());
}

TEST(ProtoFields, GivesNoneForWhatIsNoMessage) {
  for (const auto message :
       {"\x08"sv, "\x12\x05hi"sv, "\x0b"sv, "\x0f\x01"sv, "\x15\x01"sv, "\x80"sv}) {
    EXPECT_FALSE(ProtoFields(message)) << message;
  }
}

}  // namespace
}  // namespace kinglet::varint_reader_test
