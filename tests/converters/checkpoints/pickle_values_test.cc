#include "converters/checkpoints/pickle_values.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/converters/files.h"

namespace kinglet::pickle_values_test {
namespace {

using Opcode = PickleOpcode;

struct ValuesTest : testing::Test {
  // The value of `opcode` with `argument`; its node lives as long as the test.
  Result<PickleNode*> Read(Opcode opcode, std::string_view argument) {
    PickleInput input(Bytes(argument), 0);
    build.SetPlace(0, opcode);
    Result<PickleNode*> node = ReadPickleValue(opcode, &input, &build);
    EXPECT_TRUE(!node.ok() || input.remaining() == 0);
    return node;
  }
  template <class T>
  T Value(Opcode opcode, std::string_view argument) {
    const Result<PickleNode*> node = Read(opcode, argument);
    if (!node.ok() || (*node)->As<T>() == nullptr) {
      ADD_FAILURE() << (node.ok() ? (*node)->Describe() : node.status().message());
      return T();
    }
    return *(*node)->As<T>();
  }
  PickleBuilder build{1 << 20};
};

// Examples of Python's pickletools for decode_long and read_int4.
TEST_F(ValuesTest, Integers) {
  using namespace std::string_view_literals;
  EXPECT_EQ(Value<int64_t>(Opcode::kBinInt, "\x00\x00\x00\x80"sv), -(int64_t{1} << 31));
  EXPECT_EQ(Value<int64_t>(Opcode::kBinInt1, "\xff"), 255);
  EXPECT_EQ(Value<int64_t>(Opcode::kBinInt2, "\xff\x00"sv), 255);
  EXPECT_EQ(Value<int64_t>(Opcode::kLong1, "\x00"sv), 0);
  EXPECT_EQ(Value<int64_t>(Opcode::kLong1, "\x02\xff\x00"sv), 255);
  EXPECT_EQ(Value<int64_t>(Opcode::kLong1, "\x02\xff\x7f"), 32767);
  EXPECT_EQ(Value<int64_t>(Opcode::kLong1, "\x02\x00\xff"sv), -256);
  EXPECT_EQ(Value<int64_t>(Opcode::kLong1, "\x01\x80"), -128);
  EXPECT_EQ(Value<int64_t>(Opcode::kLong4, "\x08\0\0\0\0\0\0\0\0\0\0\x80"sv),
            std::numeric_limits<int64_t>::min());
  EXPECT_EQ(Value<int64_t>(Opcode::kInt, "-12\n"), -12);
  EXPECT_EQ(Value<bool>(Opcode::kInt, "01\n"), true);
  EXPECT_EQ(Value<bool>(Opcode::kInt, "00\n"), false);
  EXPECT_EQ(Value<int64_t>(Opcode::kLong, "12L\n"), 12);
  EXPECT_EQ(Value<int64_t>(Opcode::kLong, "12\n"), 12);
}

TEST_F(ValuesTest, KeepsTheBytesOfLargerIntegers) {
  const auto large = Value<PickleObject>(Opcode::kLong1,
                                         "\x09"
                                         "123456789");
  EXPECT_EQ(large.class_name, "int");
  ASSERT_NE(large.arguments, nullptr);
  EXPECT_EQ(large.arguments->As<PickleBytes>()->value, "123456789");
  // torch.save's magic number, 0x1950a86a20f9469cfc6c, and the first integer of more than 64 bits.
  const auto digits = [&](const char* line) {
    return Value<PickleObject>(Opcode::kLong, line).arguments->As<PickleBytes>()->value;
  };
  EXPECT_EQ(digits("119547037146038801333356L\n"), "\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19");
  EXPECT_EQ(digits("9223372036854775808L\n"), std::string("\0\0\0\0\0\0\0\x80\0", 9));
  EXPECT_FALSE(Read(Opcode::kLong, "-9223372036854775809L\n").ok());
  EXPECT_FALSE(Read(Opcode::kLong, (std::string(65, '1') + "L\n").c_str()).ok());
}

TEST_F(ValuesTest, Floats) {
  using namespace std::string_view_literals;
  EXPECT_EQ(Value<double>(Opcode::kBinFloat, "\x3f\xf0\0\0\0\0\0\0"sv), 1.0);
  EXPECT_EQ(Value<double>(Opcode::kBinFloat, "\xbf\xd5\x55\x55\x55\x55\x55\x55"sv), -1.0 / 3);
  EXPECT_EQ(Value<double>(Opcode::kFloat, "-1.5e3\n"), -1500.0);
  EXPECT_FALSE(Read(Opcode::kFloat, "one\n").ok());
}

TEST_F(ValuesTest, StringsAndBytes) {
  using namespace std::string_view_literals;
  EXPECT_EQ(Value<std::string>(Opcode::kShortBinUnicode, "\x02\xc3\xa9"), "é");
  EXPECT_EQ(Value<std::string>(Opcode::kShortBinString, "\x00"sv), "");
  EXPECT_EQ(Value<std::string>(Opcode::kBinUnicode, "\x01\0\0\0a"sv), "a");
  EXPECT_EQ(Value<std::string>(Opcode::kBinString, "\x01\0\0\0a"sv), "a");
  EXPECT_EQ(Value<std::string>(Opcode::kBinUnicode8, "\x01\0\0\0\0\0\0\0a"sv), "a");
  EXPECT_EQ(Value<PickleBytes>(Opcode::kShortBinBytes, "\x01\xff").value, "\xff");
  EXPECT_EQ(Value<PickleBytes>(Opcode::kBinBytes, "\x01\0\0\0b"sv).value, "b");
  EXPECT_EQ(Value<PickleBytes>(Opcode::kBinBytes8, "\x01\0\0\0\0\0\0\0c"sv).value, "c");
  EXPECT_EQ(Value<PickleBytes>(Opcode::kByteArray8, "\x01\0\0\0\0\0\0\0d"sv).value, "d");
  EXPECT_EQ(Value<std::string>(Opcode::kString, "'x'\n"), "x");
  EXPECT_EQ(Value<std::string>(Opcode::kUnicode, "\\u00e9\n"), "é");
  EXPECT_FALSE(Read(Opcode::kString, "x\n").ok());
  EXPECT_FALSE(Read(Opcode::kUnicode, "\\u00\n").ok());
}

TEST_F(ValuesTest, RefusesLengthsBeyondTheEndBeforeTakingMemory) {
  using namespace std::string_view_literals;
  const std::pair<Opcode, std::string_view> cases[] = {
      {Opcode::kShortBinUnicode, "\x02x"sv},
      {Opcode::kBinUnicode, "\xff\xff\xff\x7fx"sv},
      {Opcode::kBinBytes, "\xff\xff\xff\xffx"sv},
      {Opcode::kBinUnicode8, "\0\0\0\0\0\0\0\x80x"sv},
      {Opcode::kBinBytes8, "\xff\xff\xff\xff\xff\xff\xff\xffx"sv},
      {Opcode::kByteArray8, "\xff\xff\xff\xff\xff\xff\xff\x7fx"sv},
      {Opcode::kLong1, "\x05x"sv},
      {Opcode::kLong4, "\xff\xff\xff\xffx"sv},
  };
  for (const auto& [opcode, argument] : cases) {
    const Status status = Read(opcode, argument).status();
    EXPECT_EQ(status.code(), KINGLET_INVALID_CHECKPOINT);
    EXPECT_NE(status.message().find("expected at most the 1 bytes that remain, found a length of"),
              std::string::npos)
        << status.message();
  }
  for (const Opcode opcode : {Opcode::kBinInt, Opcode::kBinFloat, Opcode::kBinUnicode8}) {
    EXPECT_FALSE(Read(opcode, "xyz").ok());
  }
}

}  // namespace
}  // namespace kinglet::pickle_values_test
