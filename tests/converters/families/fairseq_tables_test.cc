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

TEST(FairseqTables, ACopyOfATiedTableThatDiffers) {
  FairseqConfig config = Adaptive();
  config.tied_tables = config.tied_projections = true;
  RecurrentSource checkpoint = AdaptiveInput();
  checkpoint.Add(kSoftmax + "head.class_proj.weight", {2, 16});
  checkpoint.Add(kSoftmax + "tail.0.0.weight", {16, 8});
  checkpoint.Copy(kInput + "1.1.weight", kSoftmax + "tail.0.0.weight");
  EXPECT_EQ(Describe(config, checkpoint).status.message(), "");
  checkpoint.Values(kSoftmax + "tail.0.0.weight")[5] += 1;
  ExpectRefused(Describe(config, checkpoint),
                "tensor decoder.adaptive_softmax.tail.0.0.weight: expected the values of "
                "decoder.embed_tokens.embeddings.1.1.weight");
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
