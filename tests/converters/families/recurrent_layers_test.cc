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

void AddLayer(RecurrentSource& checkpoint, const std::string& layer, uint64_t gates,
              uint64_t inputs, uint64_t units) {
  checkpoint.Add(layer + ".i", {gates * units, inputs});
  checkpoint.Add(layer + ".bi", {gates * units});
  checkpoint.Add(layer + ".h", {gates * units, units});
  checkpoint.Add(layer + ".bh", {gates * units});
}

TEST(RecurrentLayers, UnitsComeFromTheShapes) {
  RecurrentSource checkpoint;
  AddLayer(checkpoint, "a", 4, 5, 7);
  AddLayer(checkpoint, "b", 4, 7, 3);
  const CheckpointTensors weights = checkpoint.Weights();
  Network builder(weights);
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
  LoadedModel model = builder.Finish();
  ASSERT_TRUE(ReadTensors(model).ok());
  EXPECT_EQ(model.draft.tensors[decoder.layers[1].input_weight].name, "b.i");
  EXPECT_EQ(model.draft.tensors[*decoder.layers[1].recurrent_bias].name, "b.bh");
}

TEST(RecurrentLayers, TheRowsTellTheCell) {
  for (const auto& [gates, cell] : {std::pair(3, RecurrentCell::kGru), std::pair(4, kLstm)}) {
    RecurrentSource checkpoint;
    AddLayer(checkpoint, "a", static_cast<uint64_t>(gates), 5, 7);
    const CheckpointTensors weights = checkpoint.Weights();
    Network builder(weights);
    RecurrentLayers layers(builder, std::nullopt);
    layers.SetInputs(5);
    layers.Claim(Names("a"));
    ASSERT_TRUE(builder.CheckNames("a network").ok());
    EXPECT_EQ(layers.Describe().layers[0].cell, cell);
  }
}

TEST(RecurrentLayers, WhatCannotBeKnownIsNotReported) {
  RecurrentSource checkpoint;
  AddLayer(checkpoint, "a", 4, 5, 7);
  AddLayer(checkpoint, "b", 4, 9, 3);  // would be faulty if the previous layer were complete
  checkpoint.Add("a.h", {29, 7});
  checkpoint.Add("a.old", {1, 2, 3});
  const CheckpointTensors weights = checkpoint.Weights();
  Network builder(weights);
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
