#include "format/validate_dense.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "format/model_file.h"
#include "format/writer.h"
#include "tests/support/transformer_builder.h"

namespace kinglet::validate_dense_test {
namespace {

TensorId Add(ModelDraft& draft, const std::string& name, const Shape& shape) {
  draft.tensors.push_back({name, shape, DenseF32{std::vector<float>(Count(shape), 1)}, false});
  return static_cast<TensorId>(draft.tensors.size() - 1);
}

// Layers from 8 elements to 6 and to 8 again, after the decoder.
ModelDraft GoodDraft() {
  ModelDraft draft = TinyTransformer();
  DenseLayers dense{"dense", DensePlace::kOutput};
  DenseLayer narrow{Add(draft, "narrow", {6, 8}), Add(draft, "narrow.bias", {6}),
                    DenseNorm::kLayer};
  narrow.norm_gain = Add(draft, "gain", {6});
  narrow.norm_bias = Add(draft, "offset", {6});
  narrow.activation = Activation::kLeakyRelu;
  DenseLayer wide{Add(draft, "wide", {8, 6})};
  wide.norm = DenseNorm::kRootMeanSquare;
  wide.epsilon = 0.5;
  dense.layers = {narrow, wide};
  dense.input = TailInput::kFixedPoint15;
  auto& blocks = draft.description.blocks;
  blocks.insert(blocks.begin() + 2, dense);
  draft.description.end_token = 16;
  return draft;
}

TEST(ValidateDense, AWholeModelIsReadAsWritten) {
  const ModelDraft draft = GoodDraft();
  const auto bytes = SerialiseModel(draft);
  ASSERT_TRUE(bytes.ok()) << bytes.status().message();
  const auto file = *ModelFile::FromBytes(*bytes);
  EXPECT_EQ(file->description().end_token, 16u);
  EXPECT_EQ(FindDenseLayers(file->description(), DensePlace::kInput), nullptr);
  const auto* read = FindDenseLayers(file->description(), DensePlace::kOutput);
  const auto* written = FindDenseLayers(draft.description, DensePlace::kOutput);
  ASSERT_NE(read, nullptr);
  EXPECT_EQ(read->name, "dense");
  EXPECT_EQ(read->input, TailInput::kFixedPoint15);
  ASSERT_EQ(read->layers.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    const DenseLayer &a = read->layers[i], &b = written->layers[i];
    EXPECT_EQ(a.weight, b.weight);
    EXPECT_EQ(a.bias, b.bias);
    EXPECT_EQ(a.norm, b.norm);
    EXPECT_EQ(a.norm_gain, b.norm_gain);
    EXPECT_EQ(a.norm_bias, b.norm_bias);
    EXPECT_EQ(a.epsilon, b.epsilon);
    EXPECT_EQ(a.activation, b.activation);
  }
}

DenseLayers& Dense(ModelDraft& draft) { return std::get<DenseLayers>(draft.description.blocks[2]); }

TEST(ValidateDense, Refusals) {
  struct Case {
    const char* message;
    std::function<void(ModelDraft&)> change;
  };
  const Case cases[] = {
      {"block dense, layers: expected 1 to 4096, found 0",
       [](ModelDraft& draft) { Dense(draft).layers.clear(); }},
      {"block dense, layer 0, weight: expected shape [8, 8]",
       [](ModelDraft& draft) { Dense(draft).layers.erase(Dense(draft).layers.begin()); }},
      {"block dense, rows of the last weight: expected 8, found 6",
       [](ModelDraft& draft) { Dense(draft).layers.pop_back(); }},
      {"block dense, layer 0, weight: expected a tensor id below",
       [](ModelDraft& draft) { Dense(draft).layers[0].weight = 9999; }},
      {"block dense, layer 0, bias: expected shape [6]",
       [](ModelDraft& draft) { Dense(draft).layers[0].bias = Dense(draft).layers[1].weight; }},
      {"block dense, layer 0, norm_gain: expected one",
       [](ModelDraft& draft) { Dense(draft).layers[0].norm_gain.reset(); }},
      {"block dense, layer 0, norm_bias: expected none",
       [](ModelDraft& draft) {
         Dense(draft).layers[0].norm = DenseNorm::kNone;
         Dense(draft).layers[0].norm_gain.reset();
       }},
      {"block dense, layer 1, epsilon: expected a finite number above 0",
       [](ModelDraft& draft) { Dense(draft).layers[1].epsilon = 0; }},
      {"block dense, layer 1, norm: expected a number up to 2",
       [](ModelDraft& draft) { Dense(draft).layers[1].norm = static_cast<DenseNorm>(3); }},
      {"block dense, layer 1, activation: expected a number up to 8",
       [](ModelDraft& draft) { Dense(draft).layers[1].activation = static_cast<Activation>(9); }},
      {"block dense, place: expected a number up to 1",
       [](ModelDraft& draft) { Dense(draft).place = static_cast<DensePlace>(2); }},
      {"block dense, input: expected a number up to 1",
       [](ModelDraft& draft) { Dense(draft).input = static_cast<TailInput>(2); }},
      {"blocks: expected at most one block of dense output layers, found 2",
       [](ModelDraft& draft) {
         draft.description.blocks.push_back(Dense(draft));
         std::get<DenseLayers>(draft.description.blocks.back()).name = "more";
       }},
      {"end token: expected an id below 17, found 17",
       [](ModelDraft& draft) { draft.description.end_token = 17; }},
  };
  for (const Case& each : cases) {
    ModelDraft draft = GoodDraft();
    each.change(draft);
    const auto bytes = SerialiseModel(draft);
    EXPECT_FALSE(bytes.ok()) << each.message;
    if (!bytes.ok()) {
      EXPECT_NE(bytes.status().message().find(each.message), std::string::npos)
          << bytes.status().message();
    }
  }
}

// Values that only decoders of speech toolkits have.
TEST(ValidateDense, MaskedTokensAndNormsAtTheEnd) {
  const auto refusal = [](const std::function<void(TransformerDecoder&)>& change) {
    ModelDraft draft = TinyTransformer();
    change(*FindBlock<TransformerDecoder>(draft.description));
    const auto bytes = SerialiseModel(draft);
    return bytes.ok() ? std::string() : bytes.status().message();
  };
  const auto expect = [&](const std::string& message,
                          const std::function<void(TransformerDecoder&)>& change) {
    const std::string found = refusal(change);
    EXPECT_NE(found.find(message), std::string::npos) << found;
  };
  EXPECT_EQ(refusal([](TransformerDecoder& decoder) { decoder.masked_token = 16; }), "");
  expect("masked token: expected an id below 17",
         [](TransformerDecoder& decoder) { decoder.masked_token = 17; });
  expect("masked token: expected none", [](TransformerDecoder& decoder) {
    decoder.masked_token = 1;
    decoder.start = StreamStart::kZeros;
  });
  expect("layer 0, attention_norm_gain: expected none",
         [](TransformerDecoder& decoder) { decoder.norm_order = NormOrder::kEnd; });
  expect("layer 1, inner_norm_bias: expected one",
         [](TransformerDecoder& decoder) { decoder.layers[1].inner_norm_bias.reset(); });
  expect("layer 1, end_epsilon: expected none",
         [](TransformerDecoder& decoder) { decoder.layers[1].end_epsilon = 1; });
  expect("activation: expected a number up to 8",
         [](TransformerDecoder& decoder) { decoder.activation = static_cast<Activation>(9); });
}

}  // namespace
}  // namespace kinglet::validate_dense_test
