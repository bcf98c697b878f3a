#include "converters/families/recurrent_layers.h"

#include <gtest/gtest.h>

#include "tests/converters/recurrent_source.h"

namespace kinglet::recurrent_layers_test {
namespace {

constexpr RecurrentCell kLstm = RecurrentCell::kLstm;

// Weights "i" and "h" and biases "bi" and "bh" of a layer.
RecurrentLayerNames Names(const std::string& layer) {
  return {layer + ".i", layer + ".bi", layer + ".h", layer + ".bh", {layer + ".old"}};
}

void AddLayer(RecurrentSource& source, const std::string& layer, uint64_t gates, uint64_t inputs,
              uint64_t units) {
  source.Add(layer + ".i", {gates * units, inputs});
  source.Add(layer + ".bi", {gates * units});
  source.Add(layer + ".h", {gates * units, units});
  source.Add(layer + ".bh", {gates * units});
}

TEST(RecurrentLayers, UnitsComeFromTheShapes) {
  RecurrentSource source;
  AddLayer(source, "a", 4, 5, 7);
  AddLayer(source, "b", 4, 7, 3);
  const CheckpointTensors weights = source.Weights();
  DraftBuilder builder(weights);
  RecurrentLayers layers(builder, kLstm);
  layers.SetInputs(5);
  EXPECT_EQ(layers.width(), 5u);
  layers.Claim(Names("a"));
  EXPECT_EQ(layers.width(), 7u);
  layers.Claim(Names("b"));
  EXPECT_EQ(layers.width(), 3u);
  ASSERT_TRUE(builder.CheckNames("a network").ok());
  const RecurrentDecoder decoder = layers.Describe();
  EXPECT_EQ(decoder.inputs, 5u);
  ASSERT_EQ(decoder.layers.size(), 2u);
  EXPECT_EQ(decoder.layers[0].units, 7u);
  ASSERT_TRUE(builder.ReadValues().ok());
  EXPECT_EQ(builder.model.draft.tensors[decoder.layers[1].input_weight].name, "b.i");
  EXPECT_EQ(builder.model.draft.tensors[*decoder.layers[1].recurrent_bias].name, "b.bh");
}

TEST(RecurrentLayers, TheRowsTellTheCell) {
  for (const auto& [gates, cell] : {std::pair(3, RecurrentCell::kGru), std::pair(4, kLstm)}) {
    RecurrentSource source;
    AddLayer(source, "a", static_cast<uint64_t>(gates), 5, 7);
    const CheckpointTensors weights = source.Weights();
    DraftBuilder builder(weights);
    RecurrentLayers layers(builder, std::nullopt);
    layers.SetInputs(5);
    layers.Claim(Names("a"));
    ASSERT_TRUE(builder.CheckNames("a network").ok());
    EXPECT_EQ(layers.Describe().layers[0].cell, cell);
  }
}

TEST(RecurrentLayers, WhatCannotBeKnownIsNotReported) {
  RecurrentSource source;
  AddLayer(source, "a", 4, 5, 7);
  AddLayer(source, "b", 4, 9, 3);  // would be faulty if the previous layer were complete
  source.Add("a.h", {29, 7});
  source.Add("a.old", {1, 2, 3});
  const CheckpointTensors weights = source.Weights();
  DraftBuilder builder(weights);
  RecurrentLayers layers(builder, kLstm);
  layers.SetInputs(5);
  layers.Claim(Names("a"));
  EXPECT_EQ(layers.width(), 0u);
  layers.Claim(Names("b"));
  const std::string message = builder.CheckNames("a network").message();
  EXPECT_NE(message.find("shape a.h: expected [4 n, n] for n units"), std::string::npos) << message;
  EXPECT_EQ(message.find("b.i"), std::string::npos);
  EXPECT_EQ(message.find("a.old"), std::string::npos);
}

}  // namespace
}  // namespace kinglet::recurrent_layers_test
