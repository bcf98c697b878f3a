#include "format/header_writer.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/format/editable_model_generated.h"
#include "tests/support/classifier_builder.h"
#include "tests/support/model_builder.h"
#include "tests/support/recurrent_builder.h"
#include "tests/support/transformer_builder.h"

namespace kinglet::header_writer_test {
namespace {

// A draft's tensors with segments of their own. The header does not depend on the tensors' bytes.
struct Placed {
  std::vector<PlacedTensor> tensors;
  std::vector<PlacedSegment> segments;
};

Placed Place(const ModelDraft& draft, uint64_t first_offset) {
  Placed placed;
  const auto segment = [&] {
    placed.segments.push_back({first_offset + 64 * placed.segments.size(), 1, 7});
    return static_cast<uint32_t>(placed.segments.size() - 1);
  };
  for (const EncodedTensor& tensor : draft.tensors) {
    PlacedTensor one{{tensor.name, tensor.shape, DenseView{FloatType::kF32, {}}, std::nullopt}};
    if (const auto* packed = std::get_if<Quantised>(&tensor.values)) {
      one.view.values =
          PackedView{packed->bits, packed->rule, {}, {packed->scales.size(), 20, 9, {}}};
      one.scales = segment();
    }
    one.values = segment();
    if (tensor.pruned) {
      one.view.mask = MaskView{{}, 1};
      one.mask = segment();
    }
    placed.tensors.push_back(one);
  }
  return placed;
}

std::vector<ModelDraft> Drafts() {
  std::vector<ModelDraft> drafts = {TinyMicronet()};
  TinyOptions options;
  options.quantised = true;
  options.pruned = true;
  options.cache_capacity = 5;
  options.layers = 9;
  drafts.push_back(TinyMicronet(options));
  drafts.back().description.golden = GoldenVector{{1, 2, 3}, {-1.5, -2.5}, 1e-6};
  drafts.back().description.provenance.options = std::string(300, 'x');
  TinyRecurrentOptions recurrent{.quantised = true, .bits = 9, .cache_capacity = 5};
  recurrent.cells.assign(9, RecurrentCell::kGru);
  drafts.push_back(TinyRecurrent(recurrent));
  drafts.push_back(TinyTransformer({.biases = true, .final_norm = true, .layers = 200}));
  drafts.push_back(TinyClassifier({.classes = 0}));
  drafts.push_back(TinyClassifier({.positions = 2, .hidden = 5, .max_pool = true}));
  return drafts;
}

TEST(HeaderWriterTest, FlatBuffersOwnVerifierAndAccessorsFindWhatWasWritten) {
  for (const ModelDraft& draft : Drafts()) {
    const Placed placed = Place(draft, 4096);
    const std::vector<std::byte> bytes =
        BuildHeader(draft.description, placed.tensors,
                    PlacedVocabularies{PlacedVocabulary{0, 1}, std::nullopt}, placed.segments);
    const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
    flatbuffers::Verifier verifier(data, bytes.size());
    ASSERT_TRUE(editable::VerifyModelBuffer(verifier));
    const editable::Model* header = editable::GetModel(data);
    ASSERT_EQ(header->segments()->size(), placed.segments.size());
    ASSERT_EQ(header->tensors()->size(), draft.tensors.size());
    for (uint32_t i = 0; i < header->tensors()->size(); ++i) {
      const editable::Tensor* tensor = header->tensors()->Get(i);
      EXPECT_EQ(tensor->name()->str(), draft.tensors[i].name);
      EXPECT_EQ(tensor->packed() != nullptr,
                std::holds_alternative<Quantised>(draft.tensors[i].values));
      EXPECT_EQ(tensor->mask() != nullptr, draft.tensors[i].pruned);
    }
    EXPECT_EQ(header->blocks()->size(), draft.description.blocks.size());
    EXPECT_EQ(header->provenance()->options()->str(), draft.description.provenance.options);
    EXPECT_EQ(header->golden() != nullptr, draft.description.golden.has_value());
  }
}

TEST(HeaderWriterTest, TheSizeDependsOnNeitherOffsetsNorDigestsAndIsWithinTheEstimate) {
  for (const ModelDraft& draft : Drafts()) {
    Placed near = Place(draft, 0), far = Place(draft, uint64_t{1} << 40);
    for (PlacedSegment& segment : far.segments) segment.digest = ~uint64_t{0};
    const auto a = BuildHeader(draft.description, near.tensors, {}, near.segments);
    const auto b = BuildHeader(draft.description, far.tensors, {}, far.segments);
    EXPECT_EQ(a.size(), b.size());
    EXPECT_NE(a, b);
    EXPECT_EQ(a, BuildHeader(draft.description, near.tensors, {}, near.segments));
    EXPECT_GE(HeaderEstimate(draft.description, near.tensors, near.segments.size()), a.size());
  }
}

}  // namespace
}  // namespace kinglet::header_writer_test
