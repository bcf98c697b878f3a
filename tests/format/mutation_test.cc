// Random edits with repaired digests, as an attacker would make them: they reach the FlatBuffers
// verifier and the semantic checks. Nothing may crash, and a file that is accepted must decode.
#include <gtest/gtest.h>

#define XXH_INLINE_ALL
#include <xxhash.h>
#undef XXH_INLINE_ALL

#include <algorithm>
#include <cstring>

#include "format/coded_rows.h"
#include "format/model_file.h"
#include "format/writer.h"
#include "tests/format/hostile_edits.h"
#include "tests/support/change_stride.h"
#include "tests/support/model_builder.h"
#include "tests/support/recurrent_builder.h"

namespace kinglet::mutation_test {
namespace {

// Reads everything that the runtime may read of an accepted file.
uint64_t UseAll(const ModelFile& model) {
  uint64_t used = 0;
  for (const TensorView& tensor : model.tensors()) {
    if (const CodedView* coded = tensor.coded()) {
      const CodedRows rows(tensor);
      std::vector<uint32_t> parts(rows.positions());
      for (uint64_t row = 0; row < std::min<uint64_t>(Rows(tensor.shape), 1000); ++row) {
        rows.CodebookRows(row, parts.data());
        for (const uint32_t part : parts) EXPECT_LT(part, coded->scheme.PoolTotal());
        ++used;
      }
      continue;
    }
    for (float value : DecodedValues(tensor)) used += value == 0.0f ? 1 : 2;
    if (tensor.quantised()) used += DecodeCodes(tensor).codes.size();
  }
  if (const Vocabulary* vocabulary = model.vocabulary()) {
    for (uint32_t id = 0; id < vocabulary->size(); ++id) {
      EXPECT_EQ(vocabulary->Find(vocabulary->Word(id)), id);
    }
  }
  EXPECT_EQ(model.ledger().Total(), model.file_size());
  return used;
}

class Mutator {
 public:
  Mutator(std::vector<std::byte> bytes, uint64_t seed)
      : original_(std::move(bytes)), random_(seed) {
    std::memcpy(&header_size_, &original_[24], 8);
    const EditableFile file = EditableFile::FromBytes(original_);
    // Finds the segment table in the header by its first two values.
    const uint64_t offset = file.header.segments[0].offset();
    const uint64_t size = file.header.segments[0].size();
    for (table_ = 64; table_ < 64 + header_size_; table_ += 8) {
      if (std::memcmp(&original_[table_], &offset, 8) == 0 &&
          std::memcmp(&original_[table_ + 8], &size, 8) == 0) {
        break;
      }
    }
    segments_ = file.header.segments;
  }

  bool found_table() const { return table_ < 64 + header_size_; }

  std::vector<std::byte> Next() {
    std::vector<std::byte> bytes = original_;
    const bool in_segments = random_.Below(3) == 0;
    for (uint32_t edits = 1 + random_.Below(4); edits > 0; --edits) {
      if (in_segments) {
        const editable::Segment& segment = segments_[random_.Below(segments_.size())];
        if (segment.size() == 0) continue;
        Change(bytes, segment.offset(), segment.size());
      } else {
        Change(bytes, 64, header_size_);
      }
    }
    if (in_segments) {
      for (size_t i = 0; i < segments_.size(); ++i) {
        const uint64_t digest = XXH3_64bits(&bytes[segments_[i].offset()], segments_[i].size());
        std::memcpy(&bytes[table_ + 24 * i + 16], &digest, 8);
      }
    }
    RepairFrame(bytes);
    return bytes;
  }

 private:
  // Writes 1, 2, 4 or 8 bytes at an offset inside [begin, begin + size).
  void Change(std::vector<std::byte>& bytes, uint64_t begin, uint64_t size) {
    constexpr uint64_t kTelling[] = {
        0,          1,      2,          0x7F,         0xFF,
        0x7FFF,     0xFFFF, 0x7FFFFFFF, ~uint64_t{0}, uint64_t{1} << 63,
        0x7F800000, 64,     0x80000000};
    const uint64_t width = std::min(uint64_t{1} << random_.Below(4), size);
    const uint64_t at = begin + random_.Below(size - width + 1);
    uint64_t value = random_.Next();
    switch (random_.Below(3)) {
      case 0:
        value = kTelling[random_.Below(std::size(kTelling))];
        break;
      case 1:  // close to the present value
        value = 0;
        std::memcpy(&value, &bytes[at], width);
        value += random_.Below(9) - uint64_t{4};
        break;
      default:
        break;
    }
    std::memcpy(&bytes[at], &value, width);
  }

  const std::vector<std::byte> original_;
  TestRandom random_;
  uint64_t header_size_ = 0;
  uint64_t table_ = 0;
  std::vector<editable::Segment> segments_;
};

void MutateAndOpen(EditableFile good, int most_rounds) {
  const int rounds = most_rounds / static_cast<int>(kChangeStride);
  Mutator mutator(good.Build(), 2024);
  ASSERT_TRUE(mutator.found_table());
  int accepted = 0, invalid = 0, corrupt = 0;
  for (int round = 0; round < rounds; ++round) {
    const std::vector<std::byte> bytes = mutator.Next();
    const auto model = ModelFile::FromBytes(bytes);
    if (model.ok()) {
      ++accepted;
      EXPECT_GT(UseAll(**model), 0u);
      continue;
    }
    const Status status = model.status();
    ASSERT_TRUE(IsRefusalOf(status.message(), "")) << status.message();
    (status.code() == KINGLET_INVALID_MODEL ? invalid : corrupt) += 1;
  }
  // The edits reached every stage of the checks.
  EXPECT_GT(accepted, rounds / 40);
  EXPECT_GT(invalid, rounds / 40);
  EXPECT_GT(corrupt, rounds / 40);
}

TEST(MutationTest, NothingCrashesAndWhatIsAcceptedDecodes) { MutateAndOpen(GoodFile(), 20000); }

TEST(MutationTest, NorDoesARecurrentModel) { MutateAndOpen(GoodRecurrentFile(), 10000); }

TEST(MutationTest, NorDoesATransformer) { MutateAndOpen(GoodTransformerFile(), 10000); }

TEST(MutationTest, NorDoesATranslationModel) { MutateAndOpen(GoodTranslationFile(), 10000); }

TEST(MutationTest, NorDoCodedTables) {
  TinyRecurrentOptions options;
  options.tails = 0;
  options.input_coding = TinyCoding{3, {5}};
  options.head_coding = TinyCoding{3, {4, 1, 6}};
  MutateAndOpen(EditableFile::FromBytes(SerialiseModel(TinyRecurrent(options)).value()), 10000);
}

TEST(MutationTest, NorDoesAClassifier) { MutateAndOpen(GoodClassifierFile(), 10000); }

}  // namespace
}  // namespace kinglet::mutation_test
