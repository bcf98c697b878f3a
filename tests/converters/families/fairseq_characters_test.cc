#include "converters/families/fairseq_characters.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "converters/passes/character_table.h"
#include "tests/converters/recurrent_source.h"
#include "tests/converters/synthetic.h"

namespace kinglet::fairseq_characters_test {
namespace {

const std::string kInput = "decoder.embed_tokens.";
constexpr uint64_t kWidth = 6, kFeatures = 5;

FairseqConfig Config() {
  FairseqConfig config;
  config.width = kWidth;
  config.characters = FairseqCharacters{3, {{1, 2}, {4, 3}}, 1};
  return config;
}

RecurrentSource Network() {
  RecurrentSource checkpoint;
  checkpoint.Add(kInput + "char_embeddings.weight", {257, 3});
  checkpoint.Add(kInput + "convolutions.0.weight", {2, 3, 1});
  checkpoint.Add(kInput + "convolutions.0.bias", {2});
  checkpoint.Add(kInput + "convolutions.1.weight", {3, 3, 4});
  checkpoint.Add(kInput + "convolutions.1.bias", {3});
  checkpoint.Add(kInput + "highway.layers.0.weight", {2 * kFeatures, kFeatures});
  checkpoint.Add(kInput + "highway.layers.0.bias", {2 * kFeatures});
  checkpoint.Add(kInput + "projection.weight", {kWidth, kFeatures});
  checkpoint.Add(kInput + "projection.bias", {kWidth});
  checkpoint.Add(kInput + "symbol_embeddings", {2, kWidth});
  return checkpoint;
}

FairseqDictionary Dictionary() {
  return {"dict.txt",
          {"<s>", "<pad>", "</s>", "<unk>", "the", "\xc3\xa9t\xc3\xa9", std::string(50, 'a'),
           std::string(50, 'a') + "b", "<s>"}};
}

Result<LoadedModel> Load(const RecurrentSource& checkpoint,
                         const FairseqConfig& config = Config()) {
  const CheckpointTensors weights = checkpoint.Weights();
  kinglet::Network builder(weights);
  AddCharacterTable(config, Dictionary(), builder);
  KINGLET_ASSIGN_OR_RETURN(LoadedModel model, builder.Build("a test"));
  KINGLET_RETURN_IF_ERROR(ReadTensors(model));
  return model;
}

void ExpectRefused(const Status& status, const std::string& part,
                   StatusCode code = KINGLET_INVALID_CHECKPOINT) {
  EXPECT_EQ(status.code(), code) << part;
  EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
  EXPECT_EQ(status.message().find('\n'), std::string::npos);
}

TEST(FairseqCharacters, RowsOfWordsAndOfFairseqsOwn) {
  RecurrentSource checkpoint = Network();
  const auto model = Load(checkpoint);
  ASSERT_TRUE(model.ok()) << model.status().message();
  ASSERT_EQ(model->draft.tensors.size(), 1u);
  EXPECT_EQ(model->draft.tensors[0].name, "decoder.embed_tokens.weight");
  EXPECT_EQ(model->draft.tensors[0].shape, (Shape{9, kWidth}));
  EXPECT_EQ(model->prunable.size(), 1u);
  EXPECT_EQ(model->quantisable.size(), 1u);
  EXPECT_EQ(model->notes, (std::vector<std::string>{
                              "the character CNN, 926 parameters, becomes its table of 9 x 6",
                              "words longer than 50 bytes, of which only the first 50 count: 1"}));
  const std::vector<float> table = DecodedValues(model->draft.tensors[0]);

  CharacterCnn cnn;
  cnn.longest = 50;
  cnn.vector_width = 3;
  cnn.vectors = checkpoint.Values(kInput + "char_embeddings.weight");
  for (const auto& [index, width, channels] :
       {std::tuple<const char*, uint64_t, uint64_t>{"0", 1, 2}, {"1", 4, 3}}) {
    const std::string name = kInput + "convolutions." + index;
    cnn.filters.push_back(
        {width, channels, checkpoint.Values(name + ".weight"), checkpoint.Values(name + ".bias")});
  }
  cnn.highway.push_back({checkpoint.Values(kInput + "highway.layers.0.weight"),
                         checkpoint.Values(kInput + "highway.layers.0.bias")});
  cnn.width = kWidth;
  cnn.projection = checkpoint.Values(kInput + "projection.weight");
  cnn.bias = checkpoint.Values(kInput + "projection.bias");

  std::vector<std::string> spellings = Dictionary().words;
  for (size_t id = 0; id < 4; ++id) spellings[id] = "";
  std::vector<float> expected = *CharacterTable(cnn, spellings, 1);
  // <s> keeps the row of paddings alone, and a later word that is spelled so has its own.
  std::fill_n(expected.begin() + kWidth, kWidth, 0.0F);
  const std::vector<float>& symbols = checkpoint.Values(kInput + "symbol_embeddings");
  std::copy(symbols.begin(), symbols.end(), expected.begin() + 2 * kWidth);
  EXPECT_EQ(table, expected);
  EXPECT_NE(table[0], 0);
  EXPECT_NE(table[0], table[8 * kWidth]);
  EXPECT_TRUE(std::equal(table.begin() + 6 * kWidth, table.begin() + 7 * kWidth,
                         table.begin() + 7 * kWidth));
}

TEST(FairseqCharacters, NamesWhatIsAtFault) {
  const RecurrentSource whole = Network();
  for (const CheckpointTensor& tensor : whole.Weights()) {
    RecurrentSource checkpoint = whole;
    checkpoint.Remove(tensor.name);
    ExpectRefused(Load(checkpoint).status(), "missing " + tensor.name);
    for (const Shape& shape : {Shape{}, Shape{3}, Shape{0, 7}, Shape{2, 2, 2}}) {
      if (shape == tensor.shape) continue;
      checkpoint.Add(tensor.name, shape);
      ExpectRefused(Load(checkpoint).status(), "shape " + tensor.name + ": expected [");
    }
  }
  FairseqConfig config = Config();
  config.characters->filters[1].width = 3;
  ExpectRefused(Load(whole, config).status(),
                "shape decoder.embed_tokens.convolutions.1.weight: expected [3, 3, 3], found "
                "[3, 3, 4]");
  config = Config();
  config.characters->filters.pop_back();
  ExpectRefused(Load(whole, config).status(),
                "unused 'decoder.embed_tokens.convolutions.1.weight'");
  config = Config();
  config.characters->highway_layers = 0;
  ExpectRefused(Load(whole, config).status(),
                "unused 'decoder.embed_tokens.highway.layers.0.weight'");
  config.characters->highway_layers = 2;
  ExpectRefused(Load(whole, config).status(),
                "missing decoder.embed_tokens.highway.layers.1.weight");
}

TEST(FairseqCharacters, TheDictionary) {
  const TemporaryFolder folder;
  const CheckpointTensors none;
  FamilyInput input{folder.Path("model.pt"), "", std::nullopt, none};
  ExpectRefused(ReadFairseqDictionary(input).status(),
                "dict.txt: expected fairseq's dict.txt there or as --vocab", KINGLET_NOT_FOUND);
  folder.Write("dict.txt", "the 20\na b 3\n");
  auto dictionary = ReadFairseqDictionary(input);
  ASSERT_TRUE(dictionary.ok()) << dictionary.status().message();
  EXPECT_EQ(dictionary->words,
            (std::vector<std::string>{"<s>", "<pad>", "</s>", "<unk>", "the", "a b"}));
  EXPECT_EQ(dictionary->path, folder.Path("dict.txt"));
  // The user's dictionary comes first.
  input.vocabulary = folder.Write("vocab.txt", "<s>\n<pad>\n</s>\n<unk>\nfive\n");
  dictionary = ReadFairseqDictionary(input);
  ASSERT_TRUE(dictionary.ok()) << dictionary.status().message();
  EXPECT_EQ(dictionary->words.back(), "five");
  folder.Write("vocab.txt", "<s>\n<pad>\nthe\n");
  ExpectRefused(ReadFairseqDictionary(input).status(), "expected '</s>' as word 2");
  folder.Write("vocab.txt", "<s>\n<pad>\n</s>\n");
  ExpectRefused(ReadFairseqDictionary(input).status(), "'<unk>' as word 3, or fairseq's dict.txt");
  folder.Write("vocab.txt", "");
  EXPECT_FALSE(ReadFairseqDictionary(input).ok());
  input.vocabulary = folder.Path("absent");
  ExpectRefused(ReadFairseqDictionary(input).status(), "absent", KINGLET_NOT_FOUND);
}

}  // namespace
}  // namespace kinglet::fairseq_characters_test
