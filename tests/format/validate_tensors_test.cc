#include <gtest/gtest.h>

#include <bit>

#include "tests/format/hostile_edits.h"

namespace kinglet::validate_tensors_test {
namespace {

// GoodFile's first tensors: a pruned 5-bit matrix with a scale per row, and its bias, not pruned,
// with one divisor; norms are dense float32.
const std::string kMatrix = "layers.0.qkv.weight";
const std::string kBias = "layers.0.qkv.bias";
const std::string kDense = "layers.0.ln1.weight";

std::byte operator|(std::byte byte, int bits) { return byte | static_cast<std::byte>(bits); }

void StoreFloat(std::vector<std::byte>& bytes, size_t index, uint32_t word) {
  for (size_t i = 0; i < 4; ++i) bytes[4 * index + i] = static_cast<std::byte>(word >> (8 * i));
}

TEST(ValidateTensorsTest, NamesAndShapes) {
  const HostileEdit edits[] = {
      {"tensor 3, name", [](EditableFile& file) { file.header.tensors[3]->name = ""; }},
      {"tensor 3, name", [](EditableFile& file) { file.header.tensors[3]->name = "a\x7F"; }},
      {"tensor 3, name", [](EditableFile& file) { file.header.tensors[3]->name = "a\nb"; }},
      {"tensor 3, name", [](EditableFile& file) { file.header.tensors[3]->name = "a\xC2\x9B"; }},
      {"tensor 3, name", [](EditableFile& file) { file.header.tensors[3]->name = "\u202Ea"; }},
      {"tensor 3, bytes of its name",
       [](EditableFile& file) { file.header.tensors[3]->name = std::string(1025, 'a'); }},
      {"tensor 3, name",
       [](EditableFile& file) { file.header.tensors[3]->name = file.header.tensors[1]->name; }},
      {"ln1.weight, shape", [](EditableFile& file) { file.Tensor(kDense).shape.clear(); }},
      {"ln1.weight, shape",
       [](EditableFile& file) {
         file.Tensor(kDense).shape = {2, 2, 2};
       }},
      {"ln1.weight, shape", [](EditableFile& file) { file.Tensor(kDense).shape = {0}; }},
      {"ln1.weight, shape",
       [](EditableFile& file) {
         file.Tensor(kDense).shape = {8, 0};
       }},
      {"ln1.weight, shape", [](EditableFile& file) { file.Tensor(kDense).shape = {0x80000000}; }},
      {"ln1.weight, shape",
       [](EditableFile& file) {
         file.Tensor(kDense).shape = {0x7FFFFFFF, 0x7FFFFFFF};
       }},
      {"ln1.weight, values", [](EditableFile& file) { file.Tensor(kDense).shape = {9}; }},
      {"ln1.weight, values", [](EditableFile& file) { file.Tensor(kDense).shape = {0x7FFFFFFF}; }},
  };
  ExpectRefused(edits);
}

TEST(ValidateTensorsTest, Masks) {
  const HostileEdit edits[] = {
      {"tensor layers.0.qkv.weight, mask",
       [](EditableFile& file) { file.Tensor(kMatrix).mask->nonzeros += 1; }},
      {"tensor layers.0.qkv.weight, mask",
       [](EditableFile& file) { file.Tensor(kMatrix).mask->nonzeros = ~uint64_t{0}; }},
      {"tensor layers.0.qkv.weight, mask",
       [](EditableFile& file) { file.Mask(kMatrix).push_back(std::byte{0}); }},
      {"tensor layers.0.qkv.weight, mask",
       [](EditableFile& file) { file.Mask(kMatrix).pop_back(); }},
      {"tensor layers.0.qkv.weight, mask", [](EditableFile& file) { file.Mask(kMatrix).clear(); }},
      {"tensor layers.0.qkv.weight, mask",
       [](EditableFile& file) { file.Mask(kMatrix)[0] ^= std::byte{1}; }},
      // More bits set and counted, so that codes are missing.
      {"tensor layers.0.qkv.weight, codes",
       [](EditableFile& file) {
         file.Mask(kMatrix)[0] = std::byte{0xFF};
         file.Mask(kMatrix)[1] = std::byte{0xFF};
         file.Tensor(kMatrix).mask->nonzeros = 0;
         for (std::byte mask : file.Mask(kMatrix)) {
           file.Tensor(kMatrix).mask->nonzeros +=
               static_cast<uint64_t>(std::popcount(static_cast<unsigned char>(mask)));
         }
       }},
      // Table 1 has 7 x 4 entries: the last byte has 4 unused bits.
      {"tensor loss.layers.1.weight, mask",
       [](EditableFile& file) {
         std::byte& last = file.Mask("loss.layers.1.weight").back();
         last = last | 0x80;
       }},
      {"tensor loss.layers.1.weight, mask",
       [](EditableFile& file) {
         std::byte& last = file.Mask("loss.layers.1.weight").back();
         last = last | 0x80;
         file.Tensor("loss.layers.1.weight").mask->nonzeros += 1;
       }},
      {"tensor layers.0.ln1.weight, stored value 2",
       [](EditableFile& file) {
         file.Tensor(kDense).mask = std::make_unique<editable::MaskT>();
         file.Tensor(kDense).mask->nonzeros = 8;
         file.Tensor(kDense).mask->bits = static_cast<uint32_t>(file.segments.size());
         file.segments.push_back({std::byte{0xFF}});
         StoreFloat(file.Values(kDense), 2, 0x80000000);
       }},
      {"tensor layers.0.ln1.weight, stored value 3",
       [](EditableFile& file) {
         file.Tensor(kDense).dense->type = editable::FloatType::F16;
         file.Values(kDense).assign(16, std::byte{0x3C});
         file.Values(kDense)[6] = file.Values(kDense)[7] = std::byte{0};
         file.Tensor(kDense).mask = std::make_unique<editable::MaskT>();
         file.Tensor(kDense).mask->nonzeros = 8;
         file.Tensor(kDense).mask->bits = static_cast<uint32_t>(file.segments.size());
         file.segments.push_back({std::byte{0xFF}});
       }},
  };
  ExpectRefused(edits);
}

TEST(ValidateTensorsTest, DenseValues) {
  const HostileEdit edits[] = {
      {"tensor layers.0.ln1.weight, values",
       [](EditableFile& file) { file.Values(kDense).pop_back(); }},
      {"tensor layers.0.ln1.weight, values",
       [](EditableFile& file) { file.Values(kDense).resize(36); }},
      {"tensor layers.0.ln1.weight, values",
       [](EditableFile& file) { file.Tensor(kDense).dense->type = editable::FloatType::F16; }},
      {"tensor layers.0.ln1.weight, stored value 7",
       [](EditableFile& file) { StoreFloat(file.Values(kDense), 7, 0x7F800000); }},
      {"tensor layers.0.ln1.weight, stored value 0",
       [](EditableFile& file) { StoreFloat(file.Values(kDense), 0, 0xFF800001); }},
      {"tensor layers.0.ln1.weight, stored value 1",
       [](EditableFile& file) {
         file.Tensor(kDense).dense->type = editable::FloatType::F16;
         file.Values(kDense).assign(16, std::byte{0});
         file.Values(kDense)[3] = std::byte{0x7C};
       }},
  };
  ExpectRefused(edits);
}

TEST(ValidateTensorsTest, Codes) {
  const HostileEdit edits[] = {
      {"tensor layers.0.qkv.bias, bits",
       [](EditableFile& file) { file.Tensor(kBias).packed->bits = 1; }},
      {"tensor layers.0.qkv.bias, bits",
       [](EditableFile& file) { file.Tensor(kBias).packed->bits = 17; }},
      {"tensor layers.0.qkv.bias, bits",
       [](EditableFile& file) { file.Tensor(kBias).packed->bits = 255; }},
      {"tensor layers.0.qkv.bias, codes",
       [](EditableFile& file) { file.Tensor(kBias).packed->bits = 6; }},
      {"tensor layers.0.qkv.bias, codes",
       [](EditableFile& file) { file.Codes(kBias).push_back(std::byte{0}); }},
      {"tensor layers.0.qkv.bias, codes", [](EditableFile& file) { file.Codes(kBias).pop_back(); }},
      // 22 codes of 5 bits are 110: the last byte has 2 unused bits.
      {"tensor layers.0.qkv.bias, codes",
       [](EditableFile& file) { file.Codes(kBias).back() = file.Codes(kBias).back() | 0x80; }},
      {"tensor layers.0.qkv.bias, scale rule",
       [](EditableFile& file) {
         file.Tensor(kBias).packed->rule = editable::ScaleRule::MultiplyPerRow;
       }},
      // A zero under a set bit of the mask.
      {"tensor layers.0.qkv.weight, stored code 0",
       [](EditableFile& file) { file.Codes(kMatrix)[0] &= std::byte{0xE0}; }},
  };
  ExpectRefused(edits);
}

TEST(ValidateTensorsTest, Scales) {
  // One 31-bit field with the given float as the only scale of the bias.
  const auto divisor = [](uint32_t word) {
    return [word](EditableFile& file) {
      file.Tensor(kBias).packed->scales->bits = 31;
      file.Tensor(kBias).packed->scales->shift = 0;
      file.Scales(kBias).resize(4);
      StoreFloat(file.Scales(kBias), 0, word);
    };
  };
  const HostileEdit edits[] = {
      {"tensor layers.0.qkv.bias, scales",
       [](EditableFile& file) { file.Tensor(kBias).packed->scales->bits = 0; }},
      {"tensor layers.0.qkv.bias, scales",
       [](EditableFile& file) { file.Tensor(kBias).packed->scales->bits = 32; }},
      {"tensor layers.0.qkv.bias, scales",
       [](EditableFile& file) { file.Tensor(kBias).packed->scales->bits = 255; }},
      {"tensor layers.0.qkv.bias, scales",
       [](EditableFile& file) { file.Tensor(kBias).packed->scales->shift = 31; }},
      {"tensor layers.0.qkv.bias, scales",
       [](EditableFile& file) { file.Tensor(kBias).packed->scales->shift = 255; }},
      {"tensor layers.0.qkv.bias, scales",
       [](EditableFile& file) { file.Scales(kBias).push_back(std::byte{0}); }},
      {"tensor layers.0.qkv.bias, scales", [](EditableFile& file) { file.Scales(kBias).clear(); }},
      {"tensor layers.0.qkv.weight, scales",
       [](EditableFile& file) { file.Scales(kMatrix).pop_back(); }},
      {"tensor layers.0.qkv.bias, scales", divisor(0xBF800000)},
      {"tensor layers.0.qkv.bias, scale 0", divisor(0)},
      {"tensor layers.0.qkv.bias, scale 0", divisor(0x7F800000)},
      {"tensor layers.0.qkv.bias, scale 0", divisor(0x7FC00000)},
      // 16 / 2^-149 and 16 * 2^124 are infinite.
      {"tensor layers.0.qkv.bias, scale 0", divisor(1)},
      {"tensor layers.0.qkv.bias, scale 0",
       [&](EditableFile& file) {
         file.Tensor(kBias).packed->rule = editable::ScaleRule::MultiplyPerTensor;
         divisor((127 + 124) << 23)(file);
       }},
      {"tensor layers.0.qkv.bias, scale 0",
       [&](EditableFile& file) {
         file.Tensor(kBias).packed->rule = editable::ScaleRule::MultiplyPerTensor;
         divisor(0)(file);
       }},
      // The row of zeros at the end may have a scale of 0, the others may not.
      {"tensor layers.0.qkv.weight, scale",
       [](EditableFile& file) {
         for (std::byte& byte : file.Scales(kMatrix)) byte = std::byte{0};
       }},
  };
  ExpectRefused(edits);
  EditableFile file = GoodFile();
  file.Tensor(kBias).packed->rule = editable::ScaleRule::MultiplyPerTensor;
  divisor((127 + 123) << 23)(file);
  EXPECT_TRUE(OpenStatus(file.Build()).ok()) << "-16 * 2^123 is finite";
  EXPECT_TRUE([] {
    EditableFile zeros = GoodFile();
    for (std::byte& byte : zeros.Codes(kBias)) byte = std::byte{0};
    zeros.Tensor(kBias).packed->rule = editable::ScaleRule::MultiplyPerTensor;
    for (std::byte& byte : zeros.Scales(kBias)) byte = std::byte{0};
    return OpenStatus(zeros.Build()).ok();
  }()) << "zeros may have a scale of 0";
}

}  // namespace
}  // namespace kinglet::validate_tensors_test
