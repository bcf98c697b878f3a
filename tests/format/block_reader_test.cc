#include "format/block_reader.h"

#include <gtest/gtest.h>

#include <memory>
#include <variant>

#include "format/limits.h"
#include "format/model_file.h"
#include "tests/format/hostile_edits.h"
#include "tests/support/transformer_builder.h"
#include "tests/support/unpack.h"

namespace kinglet::block_reader_test {
namespace {

TEST(BlockReader, EnumeratorsOfRecurrentModels) {
  const HostileEdit edits[] = {
      {"block rnn, layer 1, cell",
       [](EditableFile& file) {
         file.Recurrent().layers[1]->cell = static_cast<editable::RecurrentCell>(5);
       }},
      {"block cache, start",
       [](EditableFile& file) { file.Cache().start = static_cast<editable::CacheStart>(2); }},
      {"block rnn, layers",
       [](EditableFile& file) {
         while (file.Recurrent().layers.size() <= 4096) {
           file.Recurrent().layers.push_back(
               std::make_unique<editable::RecurrentLayerT>(*file.Recurrent().layers[0]));
         }
       }},
      {"block rnn",
       [](EditableFile& file) {
         file.header.blocks[1]->neural_cache =
             std::make_unique<editable::NeuralCacheT>(file.Cache());
       }},
  };
  ExpectRefused(edits, GoodRecurrentFile());
}

TEST(BlockReader, ABlockIsOfOneKind) {
  const HostileEdit edits[] = {
      {"block classifier",
       [](EditableFile& file) { file.header.blocks[1]->bag_classifier.reset(); }},
      {"block classifier",
       [](EditableFile& file) {
         file.header.blocks[1]->adaptive_embedding =
             std::make_unique<editable::AdaptiveEmbeddingT>(file.Embedding());
       }},
      {"block embedding, bins",
       [](EditableFile& file) {
         while (file.Embedding().bins.size() <= kMaxBins) {
           file.Embedding().bins.push_back(
               std::make_unique<editable::EmbeddingBinT>(*file.Embedding().bins[0]));
         }
       }},
  };
  ExpectRefused(edits, GoodClassifierFile());
}

TEST(BlockReader, TransformersAreReadAsWritten) {
  const TinyTransformerOptions forms[] = {
      {.clamp = 0, .tied_position_biases = true},
      {.norm_order = NormOrder::kPre, .start = StreamStart::kZeros, .start_rows = true},
      {.positions = TinyPositions::kSlots, .biases = true, .quantised = true, .bits = 7},
      {.positions = TinyPositions::kAbsolute, .first = 9, .biases = true, .final_norm = true},
      {.positions = TinyPositions::kTable, .epsilon = 1e-12},
  };
  for (const TinyTransformerOptions& form : forms) {
    const ModelDraft draft = TinyTransformer(form);
    const auto bytes = SerialiseModel(draft);
    ASSERT_TRUE(bytes.ok()) << bytes.status().message();
    const auto model = ModelFile::FromBytes(*bytes);
    ASSERT_TRUE(model.ok()) << model.status().message();
    const auto& written = *FindBlock<TransformerDecoder>(draft.description);
    const auto& read = *FindBlock<TransformerDecoder>((*model)->description());
    EXPECT_EQ(read.norm_order, form.norm_order);
    EXPECT_EQ(read.start, form.start);
    EXPECT_EQ(read.epsilon, form.epsilon);
    EXPECT_EQ(read.final_norm_gain, written.final_norm_gain);
    EXPECT_EQ(read.final_norm_bias, written.final_norm_bias);
    ASSERT_EQ(read.positions.index(), written.positions.index());
    if (const auto* relative = std::get_if<RelativeSinusoids>(&read.positions)) {
      EXPECT_EQ(relative->frequencies, std::get<RelativeSinusoids>(written.positions).frequencies);
      EXPECT_EQ(relative->clamp, form.clamp);
    } else if (const auto* absolute = std::get_if<AbsoluteSinusoids>(&read.positions)) {
      EXPECT_EQ(absolute->frequencies, std::get<AbsoluteSinusoids>(written.positions).frequencies);
      EXPECT_EQ(absolute->first, 9u);
    } else if (const auto* table = std::get_if<PositionTable>(&read.positions)) {
      EXPECT_EQ(table->table, std::get<PositionTable>(written.positions).table);
    }
    ASSERT_EQ(read.layers.size(), 2u);
    for (size_t i = 0; i < 2; ++i) {
      const TransformerLayer& a = read.layers[i];
      const TransformerLayer& b = written.layers[i];
      EXPECT_EQ(a.attention_norm_bias, b.attention_norm_bias);
      EXPECT_EQ(a.qkv_weight, b.qkv_weight);
      EXPECT_EQ(a.qkv_bias, b.qkv_bias);
      EXPECT_EQ(a.positions, b.positions);
      EXPECT_EQ(a.content_bias, b.content_bias);
      EXPECT_EQ(a.position_bias, b.position_bias);
      EXPECT_EQ(a.start, b.start);
      EXPECT_EQ(a.out_weight, b.out_weight);
      EXPECT_EQ(a.out_bias, b.out_bias);
      EXPECT_EQ(a.inner_norm_gain, b.inner_norm_gain);
      EXPECT_EQ(a.inner_norm_bias, b.inner_norm_bias);
      EXPECT_EQ(a.inner_weight, b.inner_weight);
      EXPECT_EQ(a.inner_bias, b.inner_bias);
      EXPECT_EQ(a.outer_weight, b.outer_weight);
      EXPECT_EQ(a.quantisers.has_value(), form.quantised);
    }
    const auto again = SerialiseModel(UnpackModel(**model));
    ASSERT_TRUE(again.ok());
    EXPECT_TRUE(*again == *bytes);
  }
}

}  // namespace
}  // namespace kinglet::block_reader_test
