#include "format/bitpack.h"

#include <gtest/gtest.h>

#include "tests/support/model_builder.h"

namespace kinglet::bitpack_test {
namespace {

// Field i, read bit by bit by the definition in bitpack.h.
uint32_t FieldByDefinition(std::span<const std::byte> bytes, int bits, uint64_t i) {
  uint32_t field = 0;
  for (int b = 0; b < bits; ++b) {
    const uint64_t j = i * static_cast<uint64_t>(bits) + static_cast<uint64_t>(b);
    const auto byte = static_cast<uint32_t>(bytes[j / 8]);
    field |= ((byte >> (j % 8)) & 1) << b;
  }
  return field;
}

TEST(BitpackTest, PacksTheDocumentedExample) {
  BitPacker packer(5, 3);
  packer.Append(0b10011);
  packer.Append(0b01110);
  packer.Append(0b11001);
  const std::vector<std::byte> bytes = packer.Finish();
  ASSERT_EQ(bytes.size(), 2u);
  EXPECT_EQ(static_cast<int>(bytes[0]), 0b11010011);
  EXPECT_EQ(static_cast<int>(bytes[1]), 0b01100101);
}

TEST(BitpackTest, UnpacksWhatTheDefinitionSays) {
  TestRandom random(3);
  for (int bits = 1; bits <= 32; ++bits) {
    for (uint64_t count : {0, 1, 2, 7, 8, 9, 63, 64, 65, 200}) {
      BitPacker packer(bits, count);
      std::vector<uint32_t> fields;
      for (uint64_t i = 0; i < count; ++i) {
        fields.push_back(static_cast<uint32_t>(random.Next()) & (0xFFFFFFFFu >> (32 - bits)));
        // Bits above the field's width must not leak into the next field.
        packer.Append(fields.back() | (bits < 32 ? 0xFFFFFFFFu << bits : 0));
      }
      const std::vector<std::byte> bytes = packer.Finish();
      ASSERT_EQ(bytes.size(), PackedBytes(count, bits));
      ASSERT_EQ(bytes.size(), (count * static_cast<uint64_t>(bits) + 7) / 8);
      std::vector<uint32_t> unpacked(count, 99);
      UnpackUnsigned(bytes, bits, unpacked);
      EXPECT_EQ(unpacked, fields);
      for (uint64_t i = 0; i < count; ++i) {
        ASSERT_EQ(FieldByDefinition(bytes, bits, i), fields[i]);
      }
    }
  }
}

TEST(BitpackTest, SignedFieldsAreTwosComplement) {
  for (int bits = 2; bits <= 16; ++bits) {
    const int low = -(1 << (bits - 1)), high = (1 << (bits - 1)) - 1;
    const std::vector<int16_t> values = {
        static_cast<int16_t>(low),     static_cast<int16_t>(high), 0, -1, 1,
        static_cast<int16_t>(low + 1), static_cast<int16_t>(low)};
    BitPacker packer(bits, values.size());
    for (int16_t value : values) packer.Append(static_cast<uint32_t>(value));
    const std::vector<std::byte> bytes = packer.Finish();
    std::vector<int16_t> unpacked(values.size());
    UnpackSigned(bytes, bits, unpacked);
    EXPECT_EQ(unpacked, values) << bits;
    const uint32_t stored = FieldByDefinition(bytes, bits, 0);
    EXPECT_EQ(stored, static_cast<uint32_t>(1 << (bits - 1))) << "only the sign bit is set";
  }
}

TEST(BitpackTest, ReadsNothingBehindTheEnd) {
  // Vectors of exact size, so that the sanitizer notices reads beyond them.
  for (uint64_t count = 1; count <= 40; ++count) {
    BitPacker packer(9, count);
    for (uint64_t i = 0; i < count; ++i) packer.Append(static_cast<uint32_t>(i * 13));
    std::vector<std::byte> bytes = packer.Finish();
    bytes.shrink_to_fit();
    std::vector<int16_t> unpacked(count);
    UnpackSigned(bytes, 9, unpacked);
    EXPECT_EQ(unpacked[count - 1] & 0x1FF, static_cast<int>((count - 1) * 13) & 0x1FF);
  }
}

TEST(BitpackTest, WidthZeroTakesNoBytes) {
  EXPECT_EQ(PackedBytes(1000, 0), 0u);
  std::vector<uint32_t> out(3, 7);
  UnpackUnsigned({}, 0, out);
  EXPECT_EQ(out, (std::vector<uint32_t>{0, 0, 0}));
}

TEST(BitpackTest, FindsTheFirstZeroField) {
  for (uint64_t count : {1, 20, 77}) {
    for (uint64_t zero = 0; zero <= count; ++zero) {
      BitPacker packer(7, count);
      for (uint64_t i = 0; i < count; ++i) packer.Append(i == zero || i == zero + 3 ? 0 : 127);
      EXPECT_EQ(FindZeroField(packer.Finish(), 7, count), zero);
    }
  }
  EXPECT_EQ(FindZeroField({}, 7, 0), 0u);
}

TEST(BitpackTest, CountsAndVisitsSetBits) {
  TestRandom random(5);
  std::vector<std::byte> bytes(37);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.Next());
  for (uint64_t begin = 0; begin <= 8 * bytes.size(); begin += 3) {
    for (uint64_t end = begin; end <= 8 * bytes.size(); end += 5) {
      uint64_t expected = 0;
      for (uint64_t j = begin; j < end; ++j) expected += FieldByDefinition(bytes, 1, j);
      ASSERT_EQ(CountSetBits(bytes, begin, end), expected) << begin << " " << end;
    }
  }
  for (uint64_t count : {0, 1, 63, 64, 65, 296}) {
    std::vector<uint64_t> expected, visited;
    for (uint64_t j = 0; j < count; ++j) {
      if (FieldByDefinition(bytes, 1, j) == 1) expected.push_back(j);
    }
    ForEachSetBit(bytes, count, [&](uint64_t j) { visited.push_back(j); });
    EXPECT_EQ(visited, expected);
  }
}

}  // namespace
}  // namespace kinglet::bitpack_test
