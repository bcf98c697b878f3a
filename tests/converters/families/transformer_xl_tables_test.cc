#include "converters/families/transformer_xl_tables.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>

#include "tests/converters/recurrent_source.h"

namespace kinglet::transformer_xl_tables_test {
namespace {

struct Ends {
  AdaptiveEmbedding embedding;
  AdaptiveSoftmax softmax;
  std::vector<EncodedTensor> tensors;

  const std::string& NameOf(TensorId id) const { return tensors[id].name; }
  std::vector<float> ValuesOf(TensorId id) const { return DecodedValues(tensors[id]); }
};

// 10 words, width 4, rows of 4 entries; cutoffs at 3 and 7 with `divisor`.
TransformerXlNetwork Network(int64_t divisor, int64_t embedding_width) {
  TransformerXlNetwork network;
  network.family = "test";
  network.prefix = "p.";
  network.words = 10;
  network.width = 4;
  network.embedding_width = embedding_width;
  network.cutoffs = {3, 7};
  network.divisor = divisor;
  return network;
}

// Nothing is tied.
RecurrentSource Divided() {
  RecurrentSource checkpoint;
  const uint64_t sizes[] = {3, 4, 3};
  for (uint64_t b = 0; b < 3; ++b) {
    const std::string number = std::to_string(b);
    const uint64_t width = 8 >> b;
    checkpoint.Add("p.word_emb.emb_layers." + number + ".weight", {sizes[b], width});
    checkpoint.Add("p.word_emb.emb_projs." + number, {4, width});
    checkpoint.Add("crit.out_layers." + number + ".weight", {sizes[b], width});
    checkpoint.Add("crit.out_layers." + number + ".bias", {sizes[b]});
    checkpoint.Add("crit.out_projs." + number, {4, width});
  }
  checkpoint.Add("crit.cluster_weight", {2, 8});
  checkpoint.Add("crit.cluster_bias", {2});
  return checkpoint;
}

RecurrentSource Undivided(uint64_t width) {
  RecurrentSource checkpoint;
  checkpoint.Add("p.word_emb.emb_layers.0.weight", {10, width});
  checkpoint.Add("crit.out_layers.0.weight", {10, width});
  checkpoint.Add("crit.out_layers.0.bias", {10});
  checkpoint.Add("crit.cluster_weight", {2, width});
  checkpoint.Add("crit.cluster_bias", {2});
  return checkpoint;
}

Result<Ends> Describe(const TransformerXlNetwork& network, const RecurrentSource& checkpoint) {
  const CheckpointTensors weights = checkpoint.Weights();
  kinglet::Network builder(weights);
  KINGLET_ASSIGN_OR_RETURN(auto tables, TransformerXlTables::Make(network, builder));
  tables.Claim();
  KINGLET_RETURN_IF_ERROR(builder.CheckNames("a test"));
  KINGLET_RETURN_IF_ERROR(tables.FindTies());
  Ends ends;
  ends.softmax = tables.DescribeSoftmax();
  ends.embedding = tables.DescribeEmbedding();
  LoadedModel model = builder.Finish();
  KINGLET_RETURN_IF_ERROR(ReadTensors(model));
  ends.tensors = model.draft.tensors;
  return ends;
}

std::string Refusal(const TransformerXlNetwork& network, const RecurrentSource& checkpoint) {
  const auto ends = Describe(network, checkpoint);
  return ends.ok() ? "accepted" : ends.status().message();
}

TEST(TransformerXlTables, OneTableForAllBins) {
  const RecurrentSource checkpoint = Undivided(4);
  const auto ends = Describe(Network(1, 4), checkpoint);
  ASSERT_TRUE(ends.ok()) << ends.status().message();
  EXPECT_EQ(ends->embedding.scale, 2);  // sqrt(width)
  ASSERT_EQ(ends->embedding.bins.size(), 1u);
  EXPECT_FALSE(ends->embedding.bins[0].projection.has_value());
  EXPECT_FALSE(ends->softmax.head_projection.has_value());
  ASSERT_EQ(ends->softmax.tails.size(), 2u);
  EXPECT_EQ(ends->softmax.tails[0].cluster_row, 1u);
  EXPECT_EQ(ends->softmax.tails[1].first, 7u);
  RecurrentSource copy = checkpoint;
  const std::vector<float>& table = copy.Values("crit.out_layers.0.weight");
  EXPECT_EQ(ends->ValuesOf(ends->softmax.tails[1].table),
            (std::vector<float>(table.begin() + 28, table.end())));
  const std::vector<float>& bias = copy.Values("crit.out_layers.0.bias");
  EXPECT_EQ(ends->ValuesOf(*ends->softmax.tails[0].bias),
            (std::vector<float>(bias.begin() + 3, bias.begin() + 7)));
}

TEST(TransformerXlTables, ATiedTableIsSplitForBothEnds) {
  RecurrentSource checkpoint = Undivided(4);
  checkpoint.Copy("p.word_emb.emb_layers.0.weight", "crit.out_layers.0.weight");
  TransformerXlNetwork network = Network(1, 4);
  network.forward_clusters = true;
  const auto ends = Describe(network, checkpoint);
  ASSERT_TRUE(ends.ok()) << ends.status().message();
  ASSERT_EQ(ends->embedding.bins.size(), 3u);
  EXPECT_EQ(ends->embedding.bins[0].table, ends->softmax.head_table);
  EXPECT_EQ(ends->embedding.bins[2].table, ends->softmax.tails[1].table);
  EXPECT_EQ(ends->NameOf(ends->embedding.bins[2].table), "p.word_emb.emb_layers.0.weight.2");
  EXPECT_EQ(ends->softmax.tails[0].cluster_row, 0u);
  EXPECT_EQ(ends->tensors.size(), 8u);  // three tables, three biases, two of the clusters
}

// The embedding has one projection; each bin of the softmax may share it or have its own.
TEST(TransformerXlTables, ProjectionsOfOneTable) {
  RecurrentSource checkpoint = Undivided(6);
  checkpoint.Add("p.word_emb.emb_projs.0", {4, 6});
  for (const char* name : {"crit.out_projs.0", "crit.out_projs.1", "crit.out_projs.2"}) {
    checkpoint.Add(name, {4, 6});
  }
  checkpoint.Copy("p.word_emb.emb_projs.0", "crit.out_projs.0");
  checkpoint.Copy("p.word_emb.emb_projs.0", "crit.out_projs.2");
  for (const bool excluded : {false, true}) {
    TransformerXlNetwork network = Network(1, 6);
    if (excluded) {
      network.tied_projections = {true, false, true};
      checkpoint.Remove("crit.out_projs.0");
      checkpoint.Remove("crit.out_projs.2");
    }
    const auto ends = Describe(network, checkpoint);
    ASSERT_TRUE(ends.ok()) << ends.status().message();
    EXPECT_EQ(ends->softmax.head_projection, ends->softmax.tails[1].projection);
    EXPECT_NE(ends->softmax.head_projection, ends->softmax.tails[0].projection);
    const std::vector<float> inward = ends->ValuesOf(*ends->embedding.bins[0].projection);
    const std::vector<float> outward = ends->ValuesOf(*ends->softmax.head_projection);
    EXPECT_EQ(inward, checkpoint.Values("p.word_emb.emb_projs.0"));
    for (size_t i = 0; i < 4; ++i) {
      for (size_t j = 0; j < 6; ++j) EXPECT_EQ(outward[j * 4 + i], inward[i * 6 + j]);
    }
  }
  TransformerXlNetwork network = Network(1, 6);
  network.tied_projections = {true, false, false};
  EXPECT_NE(Refusal(network, checkpoint).find("missing crit.out_projs.2"), std::string::npos);
}

// Every bin has a projection, even if its rows are as wide as the model.
TEST(TransformerXlTables, DividedTables) {
  RecurrentSource checkpoint = Divided();
  checkpoint.Copy("p.word_emb.emb_layers.1.weight", "crit.out_layers.1.weight");
  const auto ends = Describe(Network(2, 8), checkpoint);
  ASSERT_TRUE(ends.ok()) << ends.status().message();
  ASSERT_EQ(ends->embedding.bins.size(), 3u);
  for (const EmbeddingBin& bin : ends->embedding.bins) EXPECT_TRUE(bin.projection.has_value());
  EXPECT_NE(ends->embedding.bins[0].table, ends->softmax.head_table);
  EXPECT_EQ(ends->embedding.bins[1].table, ends->softmax.tails[0].table);
  EXPECT_EQ(ends->tensors[ends->softmax.tails[1].table].shape, (Shape{3, 2}));
  EXPECT_EQ(ends->tensors[*ends->softmax.tails[1].projection].shape, (Shape{2, 4}));
}

TEST(TransformerXlTables, TiedTablesMayBeOmitted) {
  RecurrentSource checkpoint = Divided();
  checkpoint.Remove("crit.out_layers.0.weight");
  checkpoint.Remove("p.word_emb.emb_layers.2.weight");
  checkpoint.Remove("crit.out_projs.1");
  checkpoint.Remove("p.word_emb.emb_projs.2");
  TransformerXlNetwork network = Network(2, 8);
  const std::string untied = Refusal(network, checkpoint);
  EXPECT_NE(untied.find("missing crit.out_layers.0.weight, p.word_emb.emb_layers.2.weight, "
                        "crit.out_projs.1, p.word_emb.emb_projs.2"),
            std::string::npos)
      << untied;
  network.tied_tables = true;
  network.tied_projections = {false, true, true};
  EXPECT_NE(Refusal(network, checkpoint)
                .find("tensor crit.out_layers.1.weight: expected the values of "
                      "p.word_emb.emb_layers.1.weight, as tie_word_embeddings is true"),
            std::string::npos);
  checkpoint.Copy("p.word_emb.emb_layers.1.weight", "crit.out_layers.1.weight");
  const auto ends = Describe(network, checkpoint);
  ASSERT_TRUE(ends.ok()) << ends.status().message();
  EXPECT_EQ(ends->embedding.bins[0].table, ends->softmax.head_table);
  EXPECT_EQ(ends->NameOf(ends->embedding.bins[2].table), "crit.out_layers.2.weight");
}

TEST(TransformerXlTables, WithoutCutoffs) {
  RecurrentSource checkpoint = Undivided(4);
  checkpoint.Remove("crit.cluster_weight");
  checkpoint.Remove("crit.cluster_bias");
  TransformerXlNetwork network = Network(1, 4);
  network.cutoffs = {};
  const auto ends = Describe(network, checkpoint);
  ASSERT_TRUE(ends.ok()) << ends.status().message();
  EXPECT_EQ(ends->softmax.head_size, 10u);
  EXPECT_TRUE(ends->softmax.tails.empty());
  EXPECT_FALSE(ends->softmax.cluster_weight.has_value());
  EXPECT_EQ(ends->NameOf(*ends->softmax.head_table), "crit.out_layers.0.weight");
}

TEST(TransformerXlTables, BinsThatCannotBe) {
  for (const std::vector<int64_t>& cutoffs :
       {std::vector<int64_t>{0}, {3, 3}, {7, 3}, {10}, {11}, {-1}, {3, INT64_MAX}}) {
    TransformerXlNetwork network = Network(1, 4);
    network.cutoffs = cutoffs;
    EXPECT_EQ(Refusal(network, Undivided(4))
                  .find("checkpoint: cutoffs: expected ascending words between 0 and 10, found "),
              0u);
  }
  TransformerXlNetwork network = Network(3, 8);  // 8, 2, 0
  EXPECT_EQ(Refusal(network, Divided()),
            "checkpoint: div_val: expected at least one column in every bin, found 3 for "
            "bin 2");
  network.cutoffs.assign(1 << 20, 1);
  EXPECT_NE(Refusal(network, Divided()).find("fewer than 4096"), std::string::npos);
}

}  // namespace
}  // namespace kinglet::transformer_xl_tables_test
