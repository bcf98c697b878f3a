#include "converters/passes/pack.h"

#include <gtest/gtest.h>

#include <vector>

#include "format/model_file.h"
#include "tests/support/model_builder.h"

namespace kinglet::pack_test {
namespace {

EncodedTensor QuantisedTensor(uint64_t count, uint64_t nonzeros, int bits) {
  Quantised quantised{bits, ScaleRule::kMultiplyPerTensor, std::vector<int16_t>(count), {1.0F}};
  for (uint64_t i = 0; i < nonzeros; ++i) quantised.codes[i] = 1;
  return {"t", {count}, quantised, false};
}

TEST(BytesOfEntries, MaskAndNonzerosAgainstAll) {
  for (int bits = kMinBits; bits <= kMaxBits; ++bits) {
    for (const uint64_t count : {1U, 7U, 64U, 1000U}) {
      for (const uint64_t nonzeros : {uint64_t{0}, count / 3, count}) {
        const EntryBytes bytes = BytesOfEntries(QuantisedTensor(count, nonzeros, bits));
        const auto width = static_cast<uint64_t>(bits);
        EXPECT_EQ(bytes.dense, (count * width + 7) / 8);
        EXPECT_EQ(bytes.pruned, (count + 7) / 8 + (nonzeros * width + 7) / 8);
      }
    }
  }
  const EntryBytes floats = BytesOfEntries({"t", {9}, DenseF32{{0, 0, 0, 0, 0, 0, 0, 1, -0.0F}}});
  EXPECT_EQ(floats.dense, 36U);
  EXPECT_EQ(floats.pruned, 2U + 4U);
  const EntryBytes halves = BytesOfEntries({"t", {3}, DenseF16{{0, 0x8000, 1}}});
  EXPECT_EQ(halves.dense, 6U);
  EXPECT_EQ(halves.pruned, 1U + 2U);
}

TEST(PackTensor, ChoosesWhatIsSmaller) {
  ModelDraft draft;
  // At 9 bits a mask saves bytes if more than one ninth of the entries are zero: 100 of 900.
  draft.tensors = {QuantisedTensor(900, 801, 9), QuantisedTensor(900, 800, 9),
                   QuantisedTensor(900, 798, 9), QuantisedTensor(900, 0, 9)};
  draft.tensors[0].pruned = true;
  for (EncodedTensor& tensor : draft.tensors) ChooseMask(tensor);
  EXPECT_FALSE(draft.tensors[0].pruned);
  EXPECT_FALSE(draft.tensors[1].pruned);  // 113 + 900 against 1013: no gain
  EXPECT_TRUE(draft.tensors[2].pruned);
  EXPECT_TRUE(draft.tensors[3].pruned);
}

TEST(PackTensor, TheFileTakesThePredictedBytes) {
  for (const bool pruned : {false, true}) {
    ModelDraft draft = TinyMicronet({.quantised = true, .bits = 9, .pruned = pruned});
    for (EncodedTensor& tensor : draft.tensors) ChooseMask(tensor);
    const auto bytes = SerialiseModel(draft);
    ASSERT_TRUE(bytes.ok()) << bytes.status().message();
    const auto file = ModelFile::FromBytes(*bytes);
    ASSERT_TRUE(file.ok()) << file.status().message();
    for (const EncodedTensor& tensor : draft.tensors) {
      uint64_t found = 0;
      for (const LedgerEntry& entry : (*file)->ledger().entries) {
        const bool counted = entry.part == LedgerPart::kCodes ||
                             entry.part == LedgerPart::kValues || entry.part == LedgerPart::kMask;
        if (entry.owner == tensor.name && counted) found += entry.bytes;
      }
      const EntryBytes expected = BytesOfEntries(tensor);
      EXPECT_EQ(found, std::min(expected.dense, expected.pruned)) << tensor.name;
    }
  }
}

}  // namespace
}  // namespace kinglet::pack_test
