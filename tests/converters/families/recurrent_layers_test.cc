#include "converters/families/recurrent_layers.h"

#include <gtest/gtest.h>

#include <tuple>

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

TEST(RecurrentLayers, ProjectionsThatDoNotFit) {
  for (const auto& [cell, name, shape, message] :
       {std::tuple(kLstm, "a.h", Shape{28, 7}, "shape a.h: expected [28, 3]"),
        std::tuple(kLstm, "a.p", Shape{3}, "shape a.p: expected [outputs, n] for n units"),
        std::tuple(RecurrentCell::kGru, "a.h", Shape{21, 7},
                   "shape a.p: expected none, as the cell is no LSTM")}) {
    RecurrentSource checkpoint;
    AddLayer(checkpoint, "a", GatesOf(cell), 5, 7);
    checkpoint.Add("a.h", {28, 3});
    checkpoint.Add("a.p", {3, 7});
    checkpoint.Add(name, shape);
    const CheckpointTensors weights = checkpoint.Weights();
    Network builder(weights);
    RecurrentLayers layers(builder, cell);
    layers.SetInputs(5);
    RecurrentLayerNames names = Names("a");
    names.projection = "a.p";
    layers.Claim(names);
    const std::string found = builder.CheckNames("a network").message();
    EXPECT_NE(found.find(message), std::string::npos) << found;
  }
}

}  // namespace
}  // namespace kinglet::recurrent_layers_test
