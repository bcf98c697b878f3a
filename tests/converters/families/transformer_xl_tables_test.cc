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
