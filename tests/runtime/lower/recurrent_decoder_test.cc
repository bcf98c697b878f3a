#include <gtest/gtest.h>

#include <set>
#include <string>

#include "tests/runtime/lower/lowering.h"
#include "tests/support/recurrent_builder.h"

namespace kinglet::recurrent_decoder_test {
namespace {

using Cell = RecurrentCell;

// A plan and the file it refers to.
struct Lowered {
  explicit Lowered(const TinyRecurrentOptions& options)
      : file(*ModelFile::FromBytes(*SerialiseModel(TinyRecurrent(options)))), plan(*Lower(*file)) {}

  size_t StepOf(const std::string& name) const {
    for (size_t i = 0; i < plan.nodes.size(); ++i) {
      if (plan.nodes[i].name == name) return i;
    }
    ADD_FAILURE() << "no node " << name;
    return 0;
  }
  // The buffer's name if it is state.
  std::set<std::string> States() const {
    std::set<std::string> names;
    for (const BufferSpec& buffer : plan.buffers) {
      if (buffer.state) names.insert(buffer.name);
    }
    return names;
  }

  std::shared_ptr<const ModelFile> file;
  Plan plan;
};

TEST(LowerRecurrent, WhatThePreviousTokenLeftIsMultipliedFirst) {
  const Lowered lowered({.cells = {Cell::kQrnn, Cell::kGru, Cell::kLstm}, .cache_capacity = 4});
  EXPECT_EQ(lowered.StepOf("cache.append"), 0u);
  const size_t embedding = lowered.StepOf("encoder");
  for (const char* layer : {"layers.0", "layers.1", "layers.2"}) {
    EXPECT_LT(lowered.StepOf(std::string(layer) + ".recurrent"), embedding);
    EXPECT_GT(lowered.StepOf(std::string(layer) + ".input"), embedding);
  }
  std::set<std::string> nodes, buffers;
  for (const Node& node : lowered.plan.nodes) EXPECT_TRUE(nodes.insert(node.name).second);
  for (const BufferSpec& buffer : lowered.plan.buffers) {
    EXPECT_TRUE(buffers.insert(buffer.name).second) << buffer.name;
  }
}

// Only what a later token reads is state, because saving a stream copies it.
TEST(LowerRecurrent, StateIsWhatTheNextTokenReads) {
  using Names = std::set<std::string>;
  EXPECT_EQ(Lowered({.cells = {Cell::kLstm, Cell::kLstm}}).States(),
            (Names{"layers.0.hidden", "layers.0.cell", "hidden", "layers.1.cell"}));
  EXPECT_EQ(Lowered({.cells = {Cell::kTanh, Cell::kRelu}}).States(),
            (Names{"layers.0.hidden", "hidden"}));
  // The first QRNN layer reads the previous embedding; the others only their own cells.
  EXPECT_EQ(Lowered({.cells = {Cell::kQrnn, Cell::kQrnn}}).States(),
            (Names{"embedded", "layers.0.cell", "layers.1.cell", "hidden"}));
  // With quantisers products read codes; a GRU mixes its own output as floats.
  EXPECT_EQ(Lowered({.cells = {Cell::kGru, Cell::kLstm}, .quantised = true, .bits = 9}).States(),
            (Names{"layers.0.hidden", "layers.0.hidden.codes", "hidden.codes", "layers.1.cell"}));
  EXPECT_EQ(Lowered({.cells = {Cell::kQrnn}, .quantised = true, .bits = 9}).States(),
            (Names{"embedded.codes", "layers.0.cell", "hidden.codes"}));
}

// The cell is as wide as the units; what the next token and the next layer read is the projection.
TEST(LowerRecurrent, AProjectionIsTheLayersOutput) {
  for (const bool quantised : {false, true}) {
    const Lowered lowered({.cells = {Cell::kLstm, Cell::kLstm},
                           .projected = 3,
                           .quantised = quantised,
                           .bits = quantised ? 9 : 0});
    for (const BufferSpec& buffer : lowered.plan.buffers) {
      if (!buffer.state) continue;
      EXPECT_EQ(buffer.count, buffer.name == "layers.0.cell"   ? 8u
                              : buffer.name == "layers.1.cell" ? 9u
                                                               : 3u)
          << buffer.name;
    }
    EXPECT_LT(lowered.StepOf("layers.0.projection"), lowered.StepOf("layers.1.input"));
    if (!quantised) continue;
    for (const MatVec* product : OpsOf<MatVec>(lowered.plan)) {
      EXPECT_EQ(lowered.plan.buffer(product->x).element, Element::kCode16);
    }
  }
}

TEST(LowerRecurrent, EveryProductOfACalibratedModelIsInteger) {
  const Lowered lowered(
      {.cells = {Cell::kQrnn, Cell::kGru, Cell::kTanh, Cell::kLstm}, .quantised = true, .bits = 9});
  // Two for each layer, the head, its clusters and two tails.
  const auto products = OpsOf<MatVec>(lowered.plan);
  EXPECT_EQ(products.size(), 4u * 2 + 4);
  for (const MatVec* product : products) {
    EXPECT_EQ(lowered.plan.buffer(product->x).element, Element::kCode16);
  }
  // One for the embedding, and one for each layer's output.
  EXPECT_EQ(OpsOf<Quantise>(lowered.plan).size(), 5u);
}

TEST(LowerRecurrent, CellsAndSizesFollowTheBlock) {
  const Lowered lowered({.cells = {Cell::kRelu, Cell::kTanh, Cell::kGru}, .units = 5});
  const auto plain = OpsOf<RnnGates>(lowered.plan);
  ASSERT_EQ(plain.size(), 2u);
  EXPECT_TRUE(plain[0]->relu);
  EXPECT_FALSE(plain[1]->relu);
  const auto gru = OpsOf<GruGates>(lowered.plan);
  ASSERT_EQ(gru.size(), 1u);
  EXPECT_EQ(lowered.plan.buffer(gru[0]->input).count, 3u * 7);
  EXPECT_EQ(lowered.plan.buffer(gru[0]->hidden).count, 7u);
  EXPECT_EQ(lowered.plan.buffer(gru[0]->hidden).name, "hidden");
}

}  // namespace
}  // namespace kinglet::recurrent_decoder_test
