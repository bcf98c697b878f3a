#include "tests/support/unpack.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "tests/support/classifier_builder.h"
#include "tests/support/model_builder.h"

namespace kinglet::unpack_test {
namespace {

std::vector<std::byte> Packed(const ModelDraft& draft) {
  Result<std::vector<std::byte>> bytes = SerialiseModel(draft);
  EXPECT_TRUE(bytes.ok()) << bytes.status().message();
  return bytes.ok() ? std::move(bytes).value() : std::vector<std::byte>();
}

ModelDraft UnpackedFrom(const std::vector<std::byte>& bytes) {
  const auto file = ModelFile::FromBytes(bytes);
  EXPECT_TRUE(file.ok()) << file.status().message();
  return file.ok() ? UnpackModel(**file) : ModelDraft();
}

// Unpacking and writing again gives the same bytes, so unpacking loses no encoding, mask, scale,
// word or value of the description.
TEST(UnpackModel, PacksToTheSameBytes) {
  for (const bool quantised : {false, true}) {
    for (const int bits : {0, 2, 9, 16}) {
      for (const bool pruned : {false, true}) {
        TinyOptions options;
        options.quantised = quantised;
        options.bits = bits;
        options.pruned = pruned;
        options.vocabulary = bits != 2;
        options.cache_capacity = bits == 16 ? 7 : 0;
        const std::vector<std::byte> bytes = Packed(TinyMicronet(options));
        EXPECT_EQ(Packed(UnpackedFrom(bytes)), bytes)
            << "quantised " << quantised << ", bits " << bits << ", pruned " << pruned;
      }
    }
  }
}

TEST(UnpackModel, EmbeddingsAndClassifiersPackToTheSameBytes) {
  for (const uint32_t positions : {0U, 3U}) {
    for (const uint32_t classes : {0U, 4U}) {
      for (const uint32_t hidden : {0U, 5U}) {
        for (const bool max_pool : {false, true}) {
          TinyClassifierOptions options{
              .positions = positions, .classes = classes, .hidden = hidden, .max_pool = max_pool};
          if (max_pool) options.padding.reset();
          options.biases = hidden > 0;
          const std::vector<std::byte> bytes = Packed(TinyClassifier(options));
          ASSERT_FALSE(bytes.empty());
          EXPECT_EQ(Packed(UnpackedFrom(bytes)), bytes);
        }
      }
    }
  }
}

TEST(UnpackModel, DerivedTensorsStayDerived) {
  ModelDraft draft = TinyMicronet({});
  draft.tensors[1].derived = true;
  const std::vector<std::byte> bytes = Packed(draft);
  EXPECT_NE(bytes, Packed(TinyMicronet({})));
  EXPECT_EQ(Packed(UnpackedFrom(bytes)), bytes);
  const auto file = *ModelFile::FromBytes(bytes);
  EXPECT_EQ(Parameters(file->tensors()[1]), 0u);
  EXPECT_EQ(Parameters(draft.tensors[1]), 0u);
  EXPECT_EQ(Parameters(file->tensors()[0]), Count(draft.tensors[0].shape));
  EXPECT_EQ(Parameters(draft.tensors[0]), Count(draft.tensors[0].shape));
}

TEST(UnpackModel, HalvesComeBackWordForWord) {
  ModelDraft draft = TinyMicronet();
  const uint16_t words[] = {0x0000, 0x8000, 0x0001, 0x83FF, 0x0400, 0x3C00, 0xBC01, 0x7BFF, 0xFBFF};
  for (const bool pruned : {false, true}) {
    EncodedTensor& tensor = draft.tensors.front();
    DenseF16 half;
    for (uint64_t i = 0; i < Count(tensor.shape); ++i) half.bits.push_back(words[i % 9]);
    tensor.values = half;
    tensor.pruned = pruned;
    const ModelDraft unpacked = UnpackedFrom(Packed(draft));
    ASSERT_EQ(unpacked.tensors.size(), draft.tensors.size());
    EXPECT_EQ(unpacked.tensors.front().pruned, pruned);
    const auto* found = std::get_if<DenseF16>(&unpacked.tensors.front().values);
    ASSERT_NE(found, nullptr);
    // A mask stores no zeros, so the negative zero loses its sign.
    if (pruned) {
      for (uint16_t& word : half.bits) word = word == 0x8000 ? 0 : word;
    }
    EXPECT_EQ(found->bits, half.bits);
  }
}

TEST(UnpackModel, KeepsGoldenValuesAndProvenance) {
  ModelDraft draft = TinyMicronet();
  draft.description.golden = GoldenVector{{1, 2, 3}, {-0.5, -2.25}, 1e-6};
  draft.description.provenance = {"producer", "family", "source", "digest", "bits 9"};
  const std::vector<std::byte> bytes = Packed(draft);
  EXPECT_EQ(Packed(UnpackedFrom(bytes)), bytes);
}

TEST(UnpackModel, OfTheSmallestModel) {
  TinyOptions options;
  options.bins = 1;
  options.vocabulary_size = 3;
  options.layers = options.heads = options.key_size = options.value_size = 1;
  options.inner = options.window = 1;
  options.width = 4;
  const std::vector<std::byte> bytes = Packed(TinyMicronet(options));
  EXPECT_EQ(Packed(UnpackedFrom(bytes)), bytes);
}

}  // namespace
}  // namespace kinglet::unpack_test
