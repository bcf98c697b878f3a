#include <gtest/gtest.h>

#include <set>
#include <string>

#include "tests/runtime/lower/lowering.h"
#include "tests/support/translation_builder.h"

namespace kinglet::transformer_encoder_test {
namespace {

struct Lowered {
  explicit Lowered(const TinyTranslationOptions& options)
      : file(*ModelFile::FromBytes(*SerialiseModel(TinyTranslation(options)))),
        plan(*Lower(*file)) {}
  std::shared_ptr<const ModelFile> file;
  Plan plan;
};

TEST(LowerEncoder, ASweepForEachLayerAndOneBeforeThem) {
  const Lowered lowered({.encoder_layers = 3, .decoder_layers = 2});
  const Plan& plan = lowered.plan;
  ASSERT_TRUE(plan.encoder.has_value());
  EXPECT_EQ(plan.encoder->vocabulary_size, 13u);
  EXPECT_EQ(plan.encoder->window, 7u);
  ASSERT_EQ(plan.encoder->sweeps.size(), 4u);
  // The sweeps come one after the other, after all other nodes.
  EXPECT_EQ(plan.encoder->sweeps.front().begin, plan.clusters.back().nodes.end);
  for (size_t i = 1; i < 4; ++i) {
    EXPECT_EQ(plan.encoder->sweeps[i].begin, plan.encoder->sweeps[i - 1].end);
  }
  EXPECT_EQ(plan.encoder->sweeps.back().end, plan.nodes.size());

  std::set<std::string> nodes, buffers;
  for (const Node& node : plan.nodes) EXPECT_TRUE(nodes.insert(node.name).second) << node.name;
  for (const BufferSpec& buffer : plan.buffers) {
    EXPECT_TRUE(buffers.insert(buffer.name).second) << buffer.name;
  }
  // The embedding of the target comes first.
  EXPECT_EQ(plan.nodes[EmbeddingNode(plan)].name, "embed");
}

// A sweep must not read rows that it writes: a token would see other tokens in two different
// layers.
TEST(LowerEncoder, SweepsReadRowsOfTheSweepBefore) {
  const Lowered lowered({.encoder_layers = 4});
  const Plan& plan = lowered.plan;
  for (const NodeRange& sweep : plan.encoder->sweeps) {
    std::set<uint32_t> written;
    for (size_t i = sweep.begin; i < sweep.end; ++i) {
      if (const auto* store = std::get_if<StoreRow>(&plan.nodes[i].op)) {
        written.insert(static_cast<uint32_t>(store->rows));
      }
    }
    for (size_t i = sweep.begin; i < sweep.end; ++i) {
      if (const auto* attention = std::get_if<SourceAttention>(&plan.nodes[i].op)) {
        EXPECT_FALSE(written.contains(static_cast<uint32_t>(attention->memory)));
      }
    }
  }
}

// Each layer has a quantiser of its own, so codes of two layers do not share rows.
TEST(LowerEncoder, QuantisedRowsAreCodesOfTheirLayer) {
  const Lowered lowered({.bits = 9, .quantised = true, .encoder_layers = 4});
  const Plan& plan = lowered.plan;
  std::set<std::string> names;
  size_t attentions = 0;
  for (const BufferSpec& buffer : plan.buffers) {
    EXPECT_TRUE(names.insert(buffer.name).second) << buffer.name;
  }
  for (const Node& node : plan.nodes) {
    if (const auto* product = std::get_if<MatVec>(&node.op)) {
      EXPECT_TRUE(plan.buffer(product->x).quantiser.has_value()) << node.name;
    } else if (const auto* attention = std::get_if<SourceAttention>(&node.op)) {
      EXPECT_EQ(plan.buffer(attention->query).element, Element::kCode16) << node.name;
      EXPECT_EQ(plan.buffer(attention->memory).element, Element::kCode16) << node.name;
      EXPECT_TRUE(attention->weights_quantiser.has_value()) << node.name;
      ++attentions;
    } else if (const auto* store = std::get_if<StoreRow>(&node.op)) {
      EXPECT_EQ(plan.buffer(store->x).element, plan.buffer(store->rows).element) << node.name;
    } else if (const auto* load = std::get_if<LoadRow>(&node.op)) {
      EXPECT_EQ(plan.buffer(load->x).element, plan.buffer(load->rows).element) << node.name;
    }
  }
  EXPECT_EQ(attentions, 4u + 2u);
  size_t rows = 0;
  for (const std::string& name : names) rows += name.starts_with("encoder.qkv.rows.") ? 1 : 0;
  EXPECT_EQ(rows, 4u);
}

TEST(LowerEncoder, StateOfTheSourceIsWhatTheDecoderReads) {
  const Lowered lowered({.decoder_layers = 2});
  std::set<std::string> of_source;
  for (const BufferSpec& buffer : lowered.plan.buffers) {
    if (!buffer.ring.of_source) continue;
    EXPECT_TRUE(buffer.state);
    EXPECT_EQ(buffer.ring.slots, 7u);
    EXPECT_EQ(buffer.count, 7u * 2 * (4 + 5));
    of_source.insert(buffer.name);
  }
  EXPECT_EQ(of_source, (std::set<std::string>{"layers.0.source", "layers.1.source"}));
}

// Nodes can then run on many tokens at once, each in memory of its own.
TEST(LowerEncoder, ItsNodesTouchNoScratchOfTheDecoder) {
  struct Named : OperandVisitor {
    std::set<BufferId> buffers;
    void Reads(BufferId id) { buffers.insert(id); }
    void Writes(BufferId id) { buffers.insert(id); }
  };
  for (const bool quantised : {false, true}) {
    const Lowered lowered({.bits = quantised ? 9 : 0, .quantised = quantised});
    const Plan& plan = lowered.plan;
    Named encoder, others;
    for (size_t i = 0; i < plan.nodes.size(); ++i) {
      const bool encodes = i >= plan.encoder->sweeps.front().begin;
      VisitOperands(plan, plan.nodes[i].op, encodes ? encoder : others);
    }
    EXPECT_GT(encoder.buffers.size(), 8u);
    for (const BufferId id : encoder.buffers) {
      const BufferSpec& buffer = plan.buffer(id);
      EXPECT_EQ(buffer.state, buffer.source == SourceUse::kNone) << buffer.name;
      EXPECT_TRUE(buffer.state || others.buffers.count(id) == 0) << buffer.name;
    }
    for (const BufferId id : others.buffers) {
      EXPECT_EQ(plan.buffer(id).source, SourceUse::kNone) << plan.buffer(id).name;
    }
  }
}

}  // namespace
}  // namespace kinglet::transformer_encoder_test
