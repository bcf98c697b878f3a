// Dense layers around a decoder, and the parts of Transformers that only speech toolkits have.
#include <gtest/gtest.h>

#include <span>

#include "runtime/session.h"
#include "tests/runtime/lower/lowering.h"
#include "tests/support/transformer_builder.h"

namespace kinglet::dense_layers_test {
namespace {

TensorId Add(ModelDraft& draft, const std::string& name, const Shape& shape, float value) {
  draft.tensors.push_back({name, shape, DenseF32{std::vector<float>(Count(shape), value)}, false});
  return static_cast<TensorId>(draft.tensors.size() - 1);
}

// y = x, then the layers that the caller adds.
DenseLayer Identity(ModelDraft& draft, const std::string& name, uint64_t width) {
  const TensorId weight = Add(draft, name, {width, width}, 0);
  auto& values = std::get<DenseF32>(draft.tensors[weight].values).values;
  for (uint64_t i = 0; i < width; ++i) values[i * width + i] = 1;
  return {weight};
}

void Insert(ModelDraft& draft, DenseLayers dense, size_t at) {
  auto& blocks = draft.description.blocks;
  blocks.insert(blocks.begin() + static_cast<ptrdiff_t>(at), std::move(dense));
}

std::vector<float> LastDistribution(const ModelDraft& draft, const std::string& backend) {
  const auto bytes = SerialiseModel(draft);
  EXPECT_TRUE(bytes.ok()) << bytes.status().message();
  ModelOptions options;
  options.backend = backend;
  const auto session = *Session::Create(*Model::FromFile(*ModelFile::FromBytes(*bytes), options));
  for (const uint32_t token : {3u, 0u, 7u, 7u, 16u, 2u, 0u, 5u}) {
    EXPECT_TRUE(session->StepToken(token).ok());
  }
  std::vector<float> values(17);
  EXPECT_TRUE(session->LogProbabilities(std::span<float>(values)).ok());
  return values;
}

TEST(DenseLayers, IdentitiesChangeNothing) {
  for (const auto positions : {TinyPositions::kRelative, TinyPositions::kTable}) {
    TinyTransformerOptions options;
    options.positions = positions;
    const ModelDraft plain = TinyTransformer(options);
    ModelDraft draft = plain;
    DenseLayers input{"in", DensePlace::kInput}, output{"out", DensePlace::kOutput};
    input.layers = {Identity(draft, "in.0", 8), Identity(draft, "in.1", 8)};
    output.layers = {Identity(draft, "out.0", 8)};
    Insert(draft, output, 2);
    Insert(draft, input, 1);
    EXPECT_EQ(LastDistribution(draft, "ref"), LastDistribution(plain, "ref"));
    EXPECT_EQ(LastDistribution(draft, "cpu"), LastDistribution(plain, "ref"));
  }
}

TEST(DenseLayers, EachPartIsANode) {
  ModelDraft draft = TinyTransformer();
  DenseLayers output{"out", DensePlace::kOutput};
  for (const auto activation : {Activation::kNone, Activation::kRelu, Activation::kGelu}) {
    for (const auto norm : {DenseNorm::kNone, DenseNorm::kLayer, DenseNorm::kRootMeanSquare}) {
      const std::string name = "out." + std::to_string(output.layers.size());
      DenseLayer layer = Identity(draft, name, 8);
      layer.bias = Add(draft, name + ".bias", {8}, 0.5f);
      layer.norm = norm;
      layer.activation = activation;
      if (norm == DenseNorm::kLayer) {
        layer.norm_gain = Add(draft, name + ".gain", {8}, 1);
        layer.norm_bias = Add(draft, name + ".offset", {8}, 0);
      }
      output.layers.push_back(layer);
    }
  }
  Insert(draft, output, 2);
  const auto file = *ModelFile::FromBytes(*SerialiseModel(draft));
  const auto plan = *Lower(*file);
  EXPECT_EQ(OpsOf<RootMeanSquareNorm>(plan).size(), 3u);
  // A ReLU without a norm before it is part of the product.
  EXPECT_EQ(OpsOf<ApplyActivation>(plan).size(), 5u);
  EXPECT_EQ(plan.buffer(plan.hidden).name, "hidden");
  EXPECT_TRUE(plan.buffer(plan.hidden).state);
  EXPECT_EQ(LastDistribution(draft, "cpu"), LastDistribution(draft, "ref"));
}

TEST(DenseLayers, MasksActivationsAndNormsOfTransformers) {
  TinyTransformerOptions options;
  options.positions = TinyPositions::kTable;
  ModelDraft draft = TinyTransformer(options);
  auto& decoder = *FindBlock<TransformerDecoder>(draft.description);
  decoder.positions = NoPositions{};
  const auto unmasked = LastDistribution(draft, "ref");
  decoder.masked_token = 0;
  decoder.activation = Activation::kDoubleSwish;
  const auto file = *ModelFile::FromBytes(*SerialiseModel(draft));
  const auto plan = *Lower(*file);
  const auto attentions = OpsOf<WindowAttention>(plan);
  ASSERT_EQ(attentions.size(), 2u);
  for (const WindowAttention* attention : attentions) {
    ASSERT_TRUE(attention->masked.has_value());
    EXPECT_EQ(attention->masked->tokens, attentions[0]->masked->tokens);
    EXPECT_FALSE(attention->restarts);
  }
  EXPECT_EQ(OpsOf<ApplyActivation>(plan).size(), 2u);
  EXPECT_NE(LastDistribution(draft, "ref"), unmasked);
  EXPECT_EQ(LastDistribution(draft, "cpu"), LastDistribution(draft, "ref"));

  decoder.norm_order = NormOrder::kEnd;
  for (TransformerLayer& layer : decoder.layers) {
    layer.attention_norm_gain = layer.attention_norm_bias = std::nullopt;
    layer.inner_norm_gain = layer.inner_norm_bias = std::nullopt;
    layer.end_epsilon = 0.25;
  }
  EXPECT_EQ(LastDistribution(draft, "cpu"), LastDistribution(draft, "ref"));
}

}  // namespace
}  // namespace kinglet::dense_layers_test
