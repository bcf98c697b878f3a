#include "converters/checkpoints/safetensors.h"

#include <gtest/gtest.h>

#include "tests/converters/checkpoints/container_files.h"
#include "tests/support/change_stride.h"

namespace kinglet::safetensors_test {
namespace {

std::string File(const std::string& header, const std::string& data) {
  std::string out;
  for (int i = 0; i < 8; ++i) out += static_cast<char>(uint64_t{header.size()} >> (8 * i) & 0xff);
  return out + header + data;
}

std::string Refusal(const std::string& content) { return RefusalOf(SafetensorsTensors, content); }

std::string Entry(const std::string& name, const std::string& type, const std::string& shape,
                  const std::string& place) {
  return "\"" + name + "\":{\"dtype\":\"" + type + "\",\"shape\":" + shape +
         ",\"data_offsets\":" + place + "}";
}

TEST(Safetensors, ReadsEveryType) {
  const auto file = OpenInput(FixturePath("tensors.safetensors"));
  EXPECT_TRUE(LooksLikeSafetensors(*file));
  const Result<CheckpointTensors> weights = SafetensorsTensors(file);
  ASSERT_TRUE(weights.ok()) << weights.status().message();
  EXPECT_EQ(weights->size(), 15U);
  EXPECT_EQ(weights->front().name, "F64");
  ExpectNamedArrays(*weights);
  EXPECT_EQ(FloatsOf(*weights, "BF16"), (std::vector<float>{1, -3, 3.140625F}));
  EXPECT_EQ(weights->front().integers().status().message(),
            FixturePath("tensors.safetensors") +
                ": tensor 'F64': expected integers, found elements of a float type");
}

TEST(Safetensors, ReadsWhatTheFormatAllows) {
  EXPECT_EQ(Refusal(File("{}", "")), "accepted");
  EXPECT_EQ(Refusal(File("{}      ", "")), "accepted");
  EXPECT_EQ(Refusal(File("{\"__metadata__\":{\"a\":\"b\"}}", "")), "accepted");
  // Data in any order, and empty tensors anywhere.
  EXPECT_EQ(
      Refusal(File("{" + Entry("a", "U8", "[2]", "[1,3]") + "," + Entry("b", "U8", "[1]", "[0,1]") +
                       "," + Entry("c", "F64", "[0,9]", "[1,1]") + "}",
                   "xyz")),
      "accepted");
}

TEST(Safetensors, RefusesTensorsThatDoNotCoverTheData) {
  const auto two = [](const std::string& a, const std::string& b, const std::string& data) {
    return Refusal(
        File("{" + Entry("a", "U8", "[2]", a) + "," + Entry("b", "U8", "[2]", b) + "}", data));
  };
  EXPECT_EQ(two("[0,2]", "[2,4]", "wxyz"), "accepted");
  EXPECT_EQ(
      two("[0,2]", "[1,3]", "xyz"),
      "safetensors: tensor 'b': expected data from byte 2, where the previous one ends, found "
      "from byte 1");
  EXPECT_EQ(
      two("[0,2]", "[3,5]", "vwxyz"),
      "safetensors: tensor 'b': expected data from byte 2, where the previous one ends, found "
      "from byte 3");
  EXPECT_EQ(
      two("[1,3]", "[3,5]", "vwxyz"),
      "safetensors: tensor 'a': expected data from byte 0, where the previous one ends, found "
      "from byte 1");
  EXPECT_EQ(two("[0,2]", "[2,4]", "vwxyz"),
            "safetensors: data: expected 4 bytes, as in the header, found 5 "
            "(the file is truncated or damaged: copy or download it again)");
  EXPECT_EQ(
      two("[0,2]", "[2,4]", "xyz"),
      "safetensors: tensor 'b': expected data_offsets inside the 3 bytes of data, found [2, 4] "
      "(the file is truncated or damaged: copy or download it again)");
}

TEST(Safetensors, RefusesPlacesThatDoNotFitTheShape) {
  const auto one = [](const std::string& type, const std::string& shape, const std::string& place) {
    return Refusal(File("{" + Entry("a", type, shape, place) + "}", "12345678"));
  };
  EXPECT_EQ(one("F32", "[2]", "[0,8]"), "accepted");
  EXPECT_EQ(one("I32", "[2,1]", "[0,8]"), "accepted");
  EXPECT_EQ(one("F64", "[]", "[0,8]"), "accepted");
  for (const char* shape :
       {"[1]", "[3]", "[0]", "[4611686018427387906]", "[4294967296,4294967298]",
        "[18446744073709551615]", "[9223372036854775808,9223372036854775808]"}) {
    EXPECT_EQ(one("F32", shape, "[0,8]"),
              "safetensors: tensor 'a': expected data_offsets of the bytes that its shape takes, "
              "found 8 bytes")
        << shape;
  }
  for (const char* place : {"[8,0]", "[0,9]", "[0]", "[]", "[0,8,8]", "[0,18446744073709551615]",
                            "[18446744073709551615,8]"}) {
    EXPECT_NE(one("F32", "[2]", place).find("expected data_offsets inside the 8 bytes of data"),
              std::string::npos)
        << place;
  }
}

// A tensor of a type that is not read is no obstacle to the others.
TEST(Safetensors, OtherTypes) {
  const std::string data("\x38\x08\0\0\0\1\0\0\0\0\0\0\0\0", 14);
  const TemporaryFile content(File("{" + Entry("half", "F8_E4M3", "[2]", "[0,2]") + "," +
                                       Entry("n", "U64", "[]", "[2,10]") + "," +
                                       Entry("q", "F4", "[8]", "[10,14]") + "}",
                                   data));
  const Result<CheckpointTensors> tensors = SafetensorsTensors(OpenInput(content.path()));
  ASSERT_TRUE(tensors.ok()) << tensors.status().message();
  EXPECT_EQ(FloatsOf(*tensors, "half"), (std::vector<float>{1, 0x1p-6F}));
  EXPECT_EQ(*Named(*tensors, "n").integers(), (std::vector<int64_t>{1 << 24}));
  EXPECT_EQ(Named(*tensors, "q").shape, (std::vector<uint64_t>{8}));
  EXPECT_NE(Named(*tensors, "q")
                .values()
                .status()
                .message()
                .find("found 'F4' (save the tensor in float32)"),
            std::string::npos);
}

// save_model of safetensors.torch removes a tied tensor and notes its name.
TEST(Safetensors, TiesInTheMetadata) {
  const TemporaryFile content(File(
      R"({"__metadata__":{"format":"pt","decoder.weight":"encoder.weight","encoder.weight":"x"},)" +
          Entry("encoder.weight", "F32", "[1]", "[0,4]") + "}",
      std::string("\0\0\x80\x3f", 4)));
  const Result<CheckpointTensors> tensors = SafetensorsTensors(OpenInput(content.path()));
  ASSERT_TRUE(tensors.ok()) << tensors.status().message();
  ASSERT_EQ(tensors->size(), 2u);
  EXPECT_EQ(FloatsOf(*tensors, "decoder.weight"), std::vector<float>{1});
  EXPECT_TRUE(SameParameter(tensors->front(), tensors->back()).value());
}

TEST(Safetensors, RefusesHeadersOfOtherForms) {
  const std::string whole = Entry("a", "U8", "[1]", "[0,1]");
  EXPECT_EQ(Refusal(File("{" + whole + "}", "x")), "accepted");
  EXPECT_EQ(Refusal(File("{" + whole + "," + whole + "}", "x")),
            "safetensors: header entry 'a': expected each name once, found 'a' again");
  for (const char* header :
       {"[]",
        "1",
        "\"a\"",
        "null",
        "{\"a\":1}",
        "{\"a\":[]}",
        "{\"a\":null}",
        "{\"a\":{}}",
        "{\"a\":{\"dtype\":\"U8\",\"shape\":[1]}}",
        "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1],\"more\":1}}",
        "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1],\"more\":{}}}",
        "{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}",
        "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"shape\":[1],\"data_offsets\":[0,1]}}",
        "{\"a\":{\"dtype\":8,\"shape\":[1],\"data_offsets\":[0,1]}}",
        "{\"a\":{\"dtype\":[\"U8\"],\"shape\":[1],\"data_offsets\":[0,1]}}",
        "{\"a\":{\"dtype\":\"U8\",\"shape\":1,\"data_offsets\":[0,1]}}",
        "{\"a\":{\"dtype\":\"U8\",\"shape\":[1.0],\"data_offsets\":[0,1]}}",
        "{\"a\":{\"dtype\":\"U8\",\"shape\":[-1],\"data_offsets\":[0,1]}}",
        "{\"a\":{\"dtype\":\"U8\",\"shape\":[18446744073709551616],\"data_offsets\":[0,1]}}",
        "{\"a\":{\"dtype\":\"U8\",\"shape\":[[1]],\"data_offsets\":[0,1]}}",
        "{\"a\":{\"dtype\":\"U8\",\"shape\":[{}],\"data_offsets\":[0,1]}}",
        "{\"a\":{\"dtype\":\"U8\",\"shape\":[true],\"data_offsets\":[0,1]}}",
        "{\"__metadata__\":1}",
        "{\"__metadata__\":{\"a\":1}}",
        "{\"__metadata__\":{\"a\":{}}}",
        "{\"__metadata__\":{\"a\":[]}}",
        "{\"__metadata__\":{},\"__metadata__\":{}}",
        "{",
        "{}}",
        "{} x",
        "",
        "{\"a\xff\":1}"}) {
    EXPECT_NE(Refusal(File(header, "x")).find("safetensors: "), std::string::npos) << header;
  }
  std::string ones = "[1";
  for (int i = 0; i < 32; ++i) ones += ",1";
  EXPECT_EQ(Refusal(File("{" + Entry("a", "U8", ones + "]", "[0,1]") + "}", "x")),
            "safetensors: header entry 'a': expected at most 32 numbers in a list, found more");
  // Nesting without end.
  EXPECT_NE(Refusal(File("{\"a\":" + std::string(1'000'000, '['), "")), "accepted");
  EXPECT_NE(Refusal(File(std::string(1'000'000, '{'), "")), "accepted");
}

TEST(Safetensors, RefusesHeadersThatDoNotFitTheFile) {
  using namespace std::string_literals;
  EXPECT_EQ(Refusal("\x03\0\0\0\0\0\0\0{}"s),
            "safetensors: byte 0: expected a header of at most 2 bytes, found 3 "
            "(the file is truncated or damaged: copy or download it again)");
  EXPECT_EQ(Refusal("\xff\xff\xff\xff\xff\xff\xff\xff{}"s),
            "safetensors: byte 0: expected a header of at most 2 bytes, found 18446744073709551615 "
            "(the file is truncated or damaged: copy or download it again)");
}

TEST(Safetensors, RecognisesByContent) {
  for (const std::string& content :
       {std::string(), std::string("\x02\0\0\0\0\0\0\0", 8), Fixture("zip.pt"),
        Fixture("legacy_protocol2.pth"), Fixture("f4.npy"), std::string("12345678{}")}) {
    const TemporaryFile file(content);
    EXPECT_FALSE(LooksLikeSafetensors(*OpenInput(file.path())));
  }
}

TEST(Safetensors, RefusesEveryPrefixAndSurvivesEveryChangedByte) {
  const std::string content = Fixture("tensors.safetensors");
  TemporaryFile file("");
  // The shortest file that can be recognised has nine bytes.
  for (size_t length = 9; length < content.size(); length += kChangeStride) {
    file.Replace(std::string_view(content).substr(0, length));
    EXPECT_FALSE(SafetensorsTensors(OpenInput(file.path())).ok()) << length;
  }
  size_t refused = 0;
  for (size_t at = 0; at < content.size(); at += kChangeStride) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string changed = content;
      changed[at] = static_cast<char>(changed[at] ^ (1 << bit));
      file.Replace(changed);
      const Result<CheckpointTensors> weights = SafetensorsTensors(OpenInput(file.path()));
      if (weights.ok()) {
        ReadEverything(*weights, content.size());
      } else {
        ++refused;
        EXPECT_NE(weights.status().message().find(": expected "), std::string::npos);
      }
    }
  }
  EXPECT_GT(refused, content.size() / kChangeStride);
}

}  // namespace
}  // namespace kinglet::safetensors_test
