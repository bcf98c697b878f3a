#include "converters/checkpoints/npy.h"

#include <gtest/gtest.h>

#include "tests/converters/files.h"
#include "tests/support/change_stride.h"

namespace kinglet::npy_test {
namespace {

using namespace std::string_literals;

// numpy.save wrote the fixtures.
NpyArray Read(const std::string& name) {
  const Result<NpyArray> array = ReadNpy(FixturePath(name));
  if (array.ok()) return *array;
  ADD_FAILURE() << array.status().message();
  return NpyArray{};
}

std::string Refusal(const std::string& content) {
  const Result<NpyArray> array = ParseNpy(Bytes(content));
  if (array.ok()) return "accepted";
  EXPECT_EQ(array.status().code(), KINGLET_INVALID_CHECKPOINT) << array.status().message();
  return array.status().message();
}

std::string Array(const std::string& header, const std::string& data) {
  std::string out = "\x93NUMPY\x01\0"s;
  out += static_cast<char>(header.size() & 0xff);
  out += static_cast<char>(header.size() >> 8);
  return out + header + data;
}

TEST(Npy, ReadsIntegers) {
  using Integers = std::vector<int64_t>;
  EXPECT_EQ(std::get<Integers>(Read("i1.npy").values), (Integers{-128, 127}));
  EXPECT_EQ(std::get<Integers>(Read("u1.npy").values), (Integers{0, 255, 1, 2}));
  EXPECT_EQ(Read("u1.npy").shape, (std::vector<uint64_t>{2, 2}));
  EXPECT_EQ(std::get<Integers>(Read("i2.npy").values), (Integers{-32768}));
  EXPECT_EQ(std::get<Integers>(Read("u2.npy").values), (Integers{0, 65535}));
  EXPECT_EQ(std::get<Integers>(Read("i4.npy").values), (Integers{-2147483648LL, 5}));
  EXPECT_EQ(std::get<Integers>(Read("u4.npy").values), (Integers{4294967295LL}));
  EXPECT_EQ(std::get<Integers>(Read("i8.npy").values), (Integers{int64_t{1} << 40, -2}));
  EXPECT_EQ(Read("i8.npy").type, "<i8");
  EXPECT_EQ(std::get<Integers>(Read("none.npy").values), Integers());
  EXPECT_EQ(Read("none.npy").shape, (std::vector<uint64_t>{0, 3}));
}

TEST(Npy, ReadsFloats) {
  EXPECT_EQ(std::get<std::vector<float>>(Read("f4.npy").values), (std::vector<float>{0.1F, -3.0F}));
  EXPECT_EQ(std::get<std::vector<double>>(Read("f8.npy").values), (std::vector<double>{1.0 / 3}));
  EXPECT_TRUE(Read("f8.npy").shape.empty());
}

TEST(Npy, ReadsStringsStoredEitherWay) {
  const std::vector<std::string> expected = {"the", "café", "😀"};
  EXPECT_EQ(std::get<std::vector<std::string>>(Read("strings.npy").values), expected);
  EXPECT_EQ(std::get<std::vector<std::string>>(Read("objects.npy").values), expected);
  // A pickled list instead of an array.
  const std::string header = "{'descr': '|O', 'fortran_order': False, 'shape': (2,), }";
  const Result<NpyArray> list = ParseNpy(Bytes(Array(header, "]q\0(X\1\0\0\0aX\1\0\0\0be."s)));
  ASSERT_TRUE(list.ok()) << list.status().message();
  EXPECT_EQ(std::get<std::vector<std::string>>(list->values), (std::vector<std::string>{"a", "b"}));
}

TEST(Npy, ReadsAHeaderAlone) {
  const std::string content = Fixture("fortran.npy");
  const Result<NpyHeader> header = ParseNpyHeader(Bytes(std::string_view(content).substr(0, 128)));
  ASSERT_TRUE(header.ok()) << header.status().message();
  EXPECT_EQ(header->type, "<i8");
  EXPECT_TRUE(header->fortran_order);
  EXPECT_EQ(header->shape, (std::vector<uint64_t>{2, 3}));
  EXPECT_EQ(header->data_begin, 128U);
  EXPECT_FALSE(ParseNpyHeader(Bytes(std::string_view(content).substr(0, 127))).ok());
}

TEST(Npy, ReadsLaterVersions) {
  for (const char* name : {"version2.npy", "version3.npy"}) {
    EXPECT_EQ(std::get<std::vector<int64_t>>(Read(name).values), (std::vector<int64_t>{0, 1, 2}));
  }
}

TEST(Npy, RefusesOtherTypes) {
  EXPECT_EQ(Refusal(Fixture("big_endian.npy")),
            "npy array: type: expected values in little-endian order, found big-endian '>i4'");
  EXPECT_EQ(Refusal(Fixture("complex.npy")),
            "npy array: type: expected integers up to 64 bits, <f4, <f8, <U or strings as |O, "
            "found '<c16'");
  EXPECT_EQ(Refusal(Fixture("fortran.npy")),
            "npy array: header: expected values in C order, found Fortran order");
  EXPECT_EQ(Refusal(Fixture("structure.npy")).substr(0, 53),
            "npy array: header: expected a plain type as descr, fo");
  EXPECT_EQ(Refusal(Fixture("numbers_as_objects.npy")),
            "npy array: entry 0: expected a str, found int");
}

TEST(Npy, RefusesEveryPrefixAndSurvivesEveryChangedByte) {
  for (const char* name : {"u1.npy", "strings.npy", "objects.npy", "version3.npy"}) {
    const std::string content = Fixture(name);
    for (size_t length = 0; length < content.size(); length += kChangeStride) {
      const std::vector<char> prefix(content.begin(),
                                     content.begin() + static_cast<std::ptrdiff_t>(length));
      EXPECT_FALSE(ParseNpy(Bytes(std::string_view(prefix.data(), prefix.size()))).ok())
          << name << " " << length;
    }
    for (size_t at = 0; at < content.size(); at += kChangeStride) {
      for (int change = 1; change < 256; change += 2) {
        std::string changed = content;
        changed[at] = static_cast<char>(changed[at] ^ change);
        const Result<NpyArray> array = ParseNpy(Bytes(changed));
        EXPECT_TRUE(array.ok() || array.status().message().find("expected") != std::string::npos);
      }
    }
  }
}

TEST(Npy, RefusesHeadersThatClaimTooMuch) {
  const auto with = [](const std::string& type, const std::string& shape) {
    return "{'descr': '" + type + "', 'fortran_order': False, 'shape': " + shape + "}";
  };
  EXPECT_EQ(Refusal(Array(with("<i4", "(9223372036854775808, 2)"), "")),
            "npy array: shape: expected fewer than 2^64 bytes, found more");
  EXPECT_NE(Refusal(Array(with("<i4", "(1000000000,)"), "xxxx"))
                .find("expected 4000000000 bytes of values, found 4"),
            std::string::npos);
  // Zero characters each: any number of them would fit.
  EXPECT_EQ(Refusal(Array(with("<U0", "(1000000000000,)"), "")),
            "npy array: type: expected <U with a number of characters, found '<U0'");
  EXPECT_EQ(Refusal(Array(with("<U4611686018427387905", "(1,)"), "")),
            "npy array: type: expected <U with a number of characters, found "
            "'<U4611686018427387905'");
  EXPECT_EQ(Refusal(Array(with("<U1", "(1,)"), "\0\xd8\0\0"s)),
            "npy array: entry 0: expected Unicode characters, found code point 55296");
  EXPECT_NE(Refusal(Array(with("<i4", "(18446744073709551616,)"), "")), "accepted");
  EXPECT_NE(Refusal(Array(with("<i4", "(-1,)"), "")), "accepted");
  EXPECT_EQ(Refusal(Array(with("<i4", "(3L, )"), "")).substr(0, 15), "npy array: byte");
  // One string of a hundred kilobytes, a hundred thousand times.
  std::string repeated = "](X\xa0\x86\1\0"s + std::string(100000, 'x') + "q\1";
  for (int i = 1; i < 100000; ++i) repeated += "h\1";
  EXPECT_NE(Refusal(Array(with("|O", "(100000,)"), repeated + "e."))
                .find("expected strings that the file can store"),
            std::string::npos);
}

TEST(Npy, RefusesOtherHeaders) {
  for (const std::string& header :
       {""s, "{}"s, "{"s, "[]"s, "{'descr': '<i4'}"s, "{'descr': '<i4', 'descr': '<i4'}"s,
        "{'descr': '<i4', 'fortran_order': False, 'shape': (1,), 'more': 1}"s,
        "{'descr': '<i4', 'fortran_order': 0, 'shape': (1,)}"s,
        "{'descr': '<i4', 'fortran_order': False, 'shape': 1}"s,
        "{'descr': '<i4', 'fortran_order': False, 'shape': (1 1)}"s,
        "{'descr': '<i4', 'fortran_order': False, 'shape': (1,)} x"s,
        "{'descr': '<i4 'fortran_order': False, 'shape': (1,)}"s}) {
    EXPECT_EQ(Refusal(Array(header, "xxxx")).substr(0, 19), "npy array: header: ") << header;
  }
  EXPECT_EQ(Refusal("\x93NUMPY\x04\0\0\0"s),
            "npy array: byte 6: expected version 1.0, 2.0 or 3.0, found 4.0");
}

}  // namespace
}  // namespace kinglet::npy_test
