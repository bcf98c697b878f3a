#include "converters/families/fairseq_tables.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/converters/recurrent_source.h"

namespace kinglet::fairseq_tables_test {
namespace {

const std::string kInput = "decoder.embed_tokens.embeddings.";
const std::string kSoftmax = "decoder.adaptive_softmax.";

// 40 words in bands of 12, 14 and 14; width 16, factor 2.
FairseqConfig Adaptive() {
  FairseqConfig config;
  config.layers = 1;
  config.width = config.input_width = config.output_width = 16;
  config.input = config.output = {{12, 26}, 2};
  return config;
}

RecurrentSource AdaptiveInput() {
  RecurrentSource checkpoint;
  const uint64_t sizes[] = {12, 14, 14}, columns[] = {16, 8, 4};
  for (size_t b = 0; b < 3; ++b) {
    checkpoint.Add(kInput + std::to_string(b) + ".0.weight", {sizes[b], columns[b]});
    checkpoint.Add(kInput + std::to_string(b) + ".1.weight", {16, columns[b]});
  }
  return checkpoint;
}

void AddSoftmax(RecurrentSource& checkpoint) {
  checkpoint.Add(kSoftmax + "head.weight", {14, 16});
  checkpoint.Add(kSoftmax + "tail.0.0.weight", {8, 16});
  checkpoint.Add(kSoftmax + "tail.0.2.weight", {14, 8});
  checkpoint.Add(kSoftmax + "tail.1.0.weight", {4, 16});
  checkpoint.Add(kSoftmax + "tail.1.2.weight", {14, 4});
}

struct Ends {
  Status status;
  AdaptiveEmbedding embedding;
  AdaptiveSoftmax softmax;
  ModelDraft draft;
  uint32_t words = 0;

  std::vector<float> Values(TensorId id) const { return DecodedValues(draft.tensors[id]); }
};

Ends Describe(const FairseqConfig& config, const RecurrentSource& checkpoint,
              const FairseqDictionary& dictionary = {}) {
  Ends ends;
  const CheckpointTensors weights = checkpoint.Weights();
  Network builder(weights);
  FairseqTables tables(config, dictionary, builder);
  ends.status = [&]() -> Status {
    KINGLET_ASSIGN_OR_RETURN(ends.embedding, tables.DescribeEmbedding());
    KINGLET_ASSIGN_OR_RETURN(ends.softmax, tables.DescribeSoftmax());
    KINGLET_RETURN_IF_ERROR(builder.CheckNames("a test"));
    KINGLET_RETURN_IF_ERROR(tables.CheckTies());
    LoadedModel model = builder.Finish();
    KINGLET_RETURN_IF_ERROR(ReadTensors(model));
    ends.draft = std::move(model.draft);
    return {};
  }();
  ends.words = tables.words();
  return ends;
}

void ExpectRefused(const Ends& ends, const std::string& part,
                   kinglet_status code = KINGLET_INVALID_CHECKPOINT) {
  EXPECT_EQ(ends.status.code(), code) << part;
  EXPECT_NE(ends.status.message().find(part), std::string::npos) << ends.status.message();
}

TEST(FairseqTables, UntiedBands) {
  RecurrentSource checkpoint = AdaptiveInput();
  AddSoftmax(checkpoint);
  const Ends ends = Describe(Adaptive(), checkpoint);
  ASSERT_TRUE(ends.status.ok()) << ends.status.message();
  EXPECT_EQ(ends.words, 40u);
  EXPECT_EQ(ends.embedding.scale, 4.0);
  ASSERT_EQ(ends.embedding.bins.size(), 3u);
  EXPECT_EQ(ends.embedding.bins[2].first, 26u);
  EXPECT_EQ(ends.embedding.bins[2].size, 14u);
  EXPECT_TRUE(ends.embedding.bins[0].projection.has_value());  // band 0 too
  const std::vector<float>& head = checkpoint.Values(kSoftmax + "head.weight");
  EXPECT_EQ(ends.softmax.head_size, 12u);
  EXPECT_EQ(ends.Values(*ends.softmax.head_table),
            std::vector<float>(head.begin(), head.begin() + 12 * 16));
  EXPECT_EQ(ends.Values(*ends.softmax.cluster_weight),
            std::vector<float>(head.begin() + 12 * 16, head.end()));
  EXPECT_FALSE(ends.softmax.head_projection.has_value());
  ASSERT_EQ(ends.softmax.tails.size(), 2u);
  for (uint32_t i = 0; i < 2; ++i) {
    EXPECT_EQ(ends.softmax.tails[i].cluster_row, i);  // forward order
    const std::string tail = kSoftmax + "tail." + std::to_string(i);
    EXPECT_EQ(ends.Values(*ends.softmax.tails[i].projection),
              checkpoint.Values(tail + ".0.weight"));
    EXPECT_EQ(ends.Values(ends.softmax.tails[i].table), checkpoint.Values(tail + ".2.weight"));
    EXPECT_FALSE(ends.draft.tensors[*ends.softmax.tails[i].projection].derived);
  }
}

RecurrentSource Tied() {
  RecurrentSource checkpoint = AdaptiveInput();
  checkpoint.Add(kSoftmax + "head.class_proj.weight", {2, 16});
  return checkpoint;
}

TEST(FairseqTables, TiedBands) {
  FairseqConfig config = Adaptive();
  config.tied_tables = config.tied_projections = true;
  RecurrentSource checkpoint = Tied();
  for (const bool copies : {false, true}) {
    if (copies) {
      checkpoint.Add(kSoftmax + "head.word_proj.weight", {12, 16});
      checkpoint.Copy(kInput + "0.0.weight", kSoftmax + "head.word_proj.weight");
      checkpoint.Add(kSoftmax + "tail.0.0.weight", {16, 8});
      checkpoint.Copy(kInput + "1.1.weight", kSoftmax + "tail.0.0.weight");
      checkpoint.Add(kSoftmax + "tail.1.2.weight", {14, 4});
      checkpoint.Copy(kInput + "2.0.weight", kSoftmax + "tail.1.2.weight");
    }
    const Ends ends = Describe(config, checkpoint);
    ASSERT_TRUE(ends.status.ok()) << ends.status.message();
    EXPECT_EQ(ends.softmax.head_table, ends.embedding.bins[0].table);
    for (size_t i = 0; i < 2; ++i) {
      const SoftmaxTail& tail = ends.softmax.tails[i];
      const EmbeddingBin& bin = ends.embedding.bins[i + 1];
      EXPECT_EQ(tail.table, bin.table);
      EXPECT_TRUE(ends.draft.tensors[*tail.projection].derived);
      const std::vector<float> transposed = ends.Values(*tail.projection);
      const std::vector<float> original = ends.Values(*bin.projection);
      const size_t columns = original.size() / 16;
      EXPECT_EQ(ends.draft.tensors[*tail.projection].shape, (Shape{columns, 16}));
      for (size_t row = 0; row < 16; ++row) {
        for (size_t column = 0; column < columns; ++column) {
          EXPECT_EQ(transposed[column * 16 + row], original[row * columns + column]);
        }
      }
    }
  }
  checkpoint.Values(kSoftmax + "tail.0.0.weight")[5] += 1;
  ExpectRefused(Describe(config, checkpoint),
                "tensor decoder.adaptive_softmax.tail.0.0.weight: expected the values of "
                "decoder.embed_tokens.embeddings.1.1.weight");
}

// As the published model of the Google Billion Word corpus: tables are tied, projections are not.
TEST(FairseqTables, TiedWordsAlone) {
  FairseqConfig config = Adaptive();
  config.tied_tables = true;
  RecurrentSource checkpoint = Tied();
  checkpoint.Add(kSoftmax + "tail.0.0.weight", {8, 16});
  checkpoint.Add(kSoftmax + "tail.1.0.weight", {4, 16});
  const Ends ends = Describe(config, checkpoint);
  ASSERT_TRUE(ends.status.ok()) << ends.status.message();
  EXPECT_EQ(ends.softmax.tails[1].table, ends.embedding.bins[2].table);
  EXPECT_EQ(ends.Values(*ends.softmax.tails[1].projection),
            checkpoint.Values(kSoftmax + "tail.1.0.weight"));
  config.tied_projections = true;  // of a transposed shape
  ExpectRefused(Describe(config, checkpoint),
                "shape decoder.adaptive_softmax.tail.0.0.weight: expected [16, 8]");
}

TEST(FairseqTables, TheLastCutoffMayBeTheVocabulary) {
  FairseqConfig config = Adaptive();
  config.input.cutoffs = config.output.cutoffs = {12, 26, 40};
  RecurrentSource checkpoint = AdaptiveInput();
  AddSoftmax(checkpoint);
  Ends ends = Describe(config, checkpoint);
  ASSERT_TRUE(ends.status.ok()) << ends.status.message();
  EXPECT_EQ(ends.embedding.bins.size(), 3u);
  EXPECT_EQ(ends.softmax.tails.size(), 2u);

  config.output.cutoffs = {40};  // a head alone
  for (const char* name : {"tail.0.0", "tail.0.2", "tail.1.0", "tail.1.2"}) {
    checkpoint.Remove(kSoftmax + name + ".weight");
  }
  checkpoint.Add(kSoftmax + "head.weight", {40, 16});
  ends = Describe(config, checkpoint);
  ASSERT_TRUE(ends.status.ok()) << ends.status.message();
  EXPECT_TRUE(ends.softmax.tails.empty());
  EXPECT_FALSE(ends.softmax.cluster_weight.has_value());

  config.output.cutoffs = {12, 41};
  ExpectRefused(Describe(config, checkpoint), "adaptive_softmax_cutoff: expected words up to 40");
  config.output = {{12, 26}, 17};
  ExpectRefused(Describe(config, checkpoint),
                "adaptive_softmax_cutoff: expected at least one column in every band, "
                "found none in band 1");
}

TEST(FairseqTables, PlainTables) {
  FairseqConfig config;
  config.width = 16;
  config.input_width = 6;
  config.output_width = 10;
  config.scaled = false;
  RecurrentSource checkpoint;
  checkpoint.Add("decoder.embed_tokens.weight", {9, 6});
  checkpoint.Add("decoder.project_in_dim.weight", {16, 6});
  checkpoint.Add("decoder.project_out_dim.weight", {10, 16});
  checkpoint.Add("decoder.embed_out", {9, 10});  // as older versions call it
  Ends ends = Describe(config, checkpoint);
  ASSERT_TRUE(ends.status.ok()) << ends.status.message();
  EXPECT_EQ(ends.words, 9u);
  EXPECT_EQ(ends.embedding.scale, 1.0);
  EXPECT_EQ(ends.Values(*ends.embedding.bins[0].projection),
            checkpoint.Values("decoder.project_in_dim.weight"));
  EXPECT_EQ(ends.Values(*ends.softmax.head_projection),
            checkpoint.Values("decoder.project_out_dim.weight"));
  EXPECT_EQ(ends.Values(*ends.softmax.head_table), checkpoint.Values("decoder.embed_out"));
  EXPECT_EQ(ends.softmax.head_size, 9u);

  checkpoint.Remove("decoder.embed_out");
  ExpectRefused(Describe(config, checkpoint), "missing decoder.output_projection.weight");
  config.tied_tables = true;
  config.output_width = 6;
  checkpoint.Add("decoder.project_out_dim.weight", {6, 16});
  ends = Describe(config, checkpoint);
  ASSERT_TRUE(ends.status.ok()) << ends.status.message();
  EXPECT_EQ(ends.softmax.head_table, ends.embedding.bins[0].table);
}

TEST(FairseqTables, WhatIsMissingIsNamedAndCrashesNothing) {
  for (const bool tied : {false, true}) {
    FairseqConfig config = Adaptive();
    config.tied_tables = config.tied_projections = tied;
    RecurrentSource complete = tied ? Tied() : AdaptiveInput();
    if (!tied) AddSoftmax(complete);
    for (const CheckpointTensor& tensor : complete.Weights()) {
      RecurrentSource checkpoint = complete;
      checkpoint.Remove(tensor.name);
      EXPECT_EQ(Describe(config, checkpoint).status.code(), KINGLET_INVALID_CHECKPOINT)
          << tensor.name;
      checkpoint.Add(tensor.name, {3, 3});
      EXPECT_EQ(Describe(config, checkpoint).status.code(), KINGLET_INVALID_CHECKPOINT)
          << tensor.name;
      checkpoint.Add(tensor.name, {});
      EXPECT_EQ(Describe(config, checkpoint).status.code(), KINGLET_INVALID_CHECKPOINT)
          << tensor.name;
    }
  }
  FairseqConfig plain;
  plain.width = plain.input_width = plain.output_width = 4;
  ExpectRefused(Describe(plain, {}), "missing decoder.embed_tokens.weight");
}

// The head and the clusters read the projected state; each tail's projection is multiplied with the
// projection before it.
TEST(FairseqTables, AnAdaptiveSoftmaxAfterAProjection) {
  FairseqConfig config = Adaptive();
  config.output_width = 8;
  RecurrentSource checkpoint = AdaptiveInput();
  checkpoint.Add("decoder.project_out_dim.weight", {8, 16});
  checkpoint.Add(kSoftmax + "head.weight", {14, 8});
  checkpoint.Add(kSoftmax + "tail.0.0.weight", {4, 8});
  checkpoint.Add(kSoftmax + "tail.0.2.weight", {14, 4});
  checkpoint.Add(kSoftmax + "tail.1.0.weight", {2, 8});
  checkpoint.Add(kSoftmax + "tail.1.2.weight", {14, 2});
  const Ends ends = Describe(config, checkpoint);
  ASSERT_TRUE(ends.status.ok()) << ends.status.message();
  const std::vector<float> before = checkpoint.Values("decoder.project_out_dim.weight");
  EXPECT_EQ(ends.Values(*ends.softmax.head_projection), before);
  EXPECT_EQ(ends.draft.tensors[*ends.softmax.cluster_weight].shape, (Shape{2, 8}));
  const std::vector<float> second = checkpoint.Values(kSoftmax + "tail.1.0.weight");
  const std::vector<float> found = ends.Values(*ends.softmax.tails[1].projection);
  ASSERT_EQ(ends.draft.tensors[*ends.softmax.tails[1].projection].shape, (Shape{2, 16}));
  for (size_t row = 0; row < 2; ++row) {
    for (size_t column = 0; column < 16; ++column) {
      double sum = 0;
      for (size_t i = 0; i < 8; ++i) sum += double{second[row * 8 + i]} * before[i * 16 + column];
      EXPECT_EQ(found[row * 16 + column], static_cast<float>(sum)) << row << " " << column;
    }
  }
  checkpoint.Remove("decoder.project_out_dim.weight");
  ExpectRefused(Describe(config, checkpoint), "missing decoder.project_out_dim.weight");
}

// Two filters and no highway layer; the tensors' names are those of fairseq_characters_test.cc.
TEST(FairseqTables, ACharacterTableHasTheSoftmaxsWords) {
  FairseqConfig config;
  config.width = config.output_width = 16;
  config.input_width = 5;  // has no effect
  config.characters = FairseqCharacters{2, {{1, 3}}, 0};
  RecurrentSource checkpoint;
  const std::string name = "decoder.embed_tokens.";
  checkpoint.Add(name + "char_embeddings.weight", {257, 2});
  checkpoint.Add(name + "convolutions.0.weight", {3, 2, 1});
  checkpoint.Add(name + "convolutions.0.bias", {3});
  checkpoint.Add(name + "projection.weight", {16, 3});
  checkpoint.Add(name + "projection.bias", {16});
  checkpoint.Add(name + "symbol_embeddings", {2, 16});
  FairseqDictionary dictionary{"dict.txt", {"<s>", "<pad>", "</s>", "<unk>", "a", "b"}};
  for (const bool adaptive : {false, true}) {
    RecurrentSource both = checkpoint;
    if (adaptive) {
      config.output = {{4}, 2};
      both.Add(kSoftmax + "head.weight", {5, 16});
      both.Add(kSoftmax + "tail.0.0.weight", {8, 16});
      both.Add(kSoftmax + "tail.0.2.weight", {2, 8});
    } else {
      both.Add("decoder.output_projection.weight", {6, 16});
    }
    const Ends ends = Describe(config, both, dictionary);
    ASSERT_TRUE(ends.status.ok()) << ends.status.message();
    EXPECT_EQ(ends.words, 6u);
    ASSERT_EQ(ends.embedding.bins.size(), 1u);
    EXPECT_FALSE(ends.embedding.bins[0].projection.has_value());
    EXPECT_EQ(ends.embedding.scale, 4.0);
    EXPECT_EQ(ends.draft.tensors[ends.embedding.bins[0].table].shape, (Shape{6, 16}));
    FairseqDictionary other = dictionary;
    other.words.push_back("c");
    ExpectRefused(Describe(config, both, other),
                  "dictionary: dict.txt: expected 6 words, as many as the softmax has");
    both.Remove(adaptive ? kSoftmax + "tail.0.2.weight" : "decoder.output_projection.weight");
    ExpectRefused(Describe(config, both, dictionary), "missing decoder.");
  }
}

}  // namespace
}  // namespace kinglet::fairseq_tables_test
