#include "format/validate_encoder.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tests/format/hostile_edits.h"
#include "tests/support/model_builder.h"
#include "tests/support/transformer_builder.h"
#include "tests/support/translation_builder.h"
#include "tests/support/unpack.h"

namespace kinglet::validate_encoder_test {
namespace {

ModelDraft GoodDraft() {
  ModelDraft draft = TinyTranslation();
  draft.description.golden = GoldenVector{{4, 3}, {-1.0, -2.0}, 0.5, {1, 12, 0}};
  return draft;
}

editable::TransformerEncoderT& Encoder(EditableFile& file) {
  for (const auto& block : file.header.blocks) {
    if (block->transformer_encoder) return *block->transformer_encoder;
  }
  ADD_FAILURE() << "no encoder";
  return *file.header.blocks[0]->transformer_encoder;
}

TEST(ValidateEncoder, AWholeModelIsReadAsWritten) {
  const ModelDraft draft = GoodDraft();
  const auto bytes = SerialiseModel(draft);
  ASSERT_TRUE(bytes.ok()) << bytes.status().message();
  const auto file = ModelFile::FromBytes(*bytes);
  ASSERT_TRUE(file.ok()) << file.status().message();
  const ModelDescription& read = (*file)->description();
  const auto *encoder = FindBlock<TransformerEncoder>(read),
             *written = FindBlock<TransformerEncoder>(draft.description);
  ASSERT_NE(encoder, nullptr);
  EXPECT_EQ(encoder->name, "encoder");
  EXPECT_EQ(encoder->vocabulary_size, 13u);
  EXPECT_EQ(encoder->embedding.bins[0].table, written->embedding.bins[0].table);
  EXPECT_EQ(encoder->stack.window, 7u);
  EXPECT_EQ(encoder->stack.layers.size(), 2u);
  EXPECT_EQ(encoder->stack.layers[1].qkv_weight, written->stack.layers[1].qkv_weight);
  EXPECT_EQ(SourceVocabularySize(read), 13u);
  const auto& cross = FindBlock<TransformerDecoder>(read)->layers[1].cross_attention;
  const auto& expected =
      FindBlock<TransformerDecoder>(draft.description)->layers[1].cross_attention;
  ASSERT_TRUE(cross.has_value());
  EXPECT_EQ(cross->norm_gain, expected->norm_gain);
  EXPECT_EQ(cross->norm_bias, expected->norm_bias);
  EXPECT_EQ(cross->query_weight, expected->query_weight);
  EXPECT_EQ(cross->query_bias, expected->query_bias);
  EXPECT_EQ(cross->key_value_weight, expected->key_value_weight);
  EXPECT_EQ(cross->key_value_bias, expected->key_value_bias);
  EXPECT_EQ(cross->out_weight, expected->out_weight);
  EXPECT_EQ(cross->out_bias, expected->out_bias);
  EXPECT_EQ(read.golden->source_ids, (std::vector<uint32_t>{1, 12, 0}));
  EXPECT_EQ((*file)->source_vocabulary()->Word(12), "s12");
  EXPECT_EQ((*file)->vocabulary()->Word(3), "</s>");

  const ModelDraft unpacked = UnpackModel(**file);
  EXPECT_EQ(unpacked.source_vocabulary, draft.source_vocabulary);
  const auto again = SerialiseModel(unpacked);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(*again, *bytes);
}

void ExpectEqual(const ActivationQuantiser& a, const ActivationQuantiser& b) {
  EXPECT_EQ(a.max_abs, b.max_abs);
  EXPECT_EQ(a.scale, b.scale);
}

TEST(ValidateEncoder, QuantisersAreReadAsWritten) {
  const ModelDraft draft = TinyTranslation({.bits = 9, .quantised = true});
  const auto file = ModelFile::FromBytes(*SerialiseModel(draft));
  ASSERT_TRUE(file.ok()) << file.status().message();
  const ModelDescription& read = (*file)->description();
  const auto& stack = FindBlock<TransformerEncoder>(read)->stack;
  ExpectEqual(*stack.output, {6, 6.0f / 256});
  ExpectEqual(stack.layers[1].quantisers->inner, {5, 5.0f / 256});
  const auto& cross = FindBlock<TransformerDecoder>(read)->layers[1].cross_attention->quantisers;
  ASSERT_TRUE(cross.has_value());
  ExpectEqual(cross->input, {3, 3.0f / 256});
  ExpectEqual(cross->query, {4, 4.0f / 256});
  ExpectEqual(cross->key_value, {5, 5.0f / 256});
  ExpectEqual(cross->weights, {1, 1.0f / 256});
  ExpectEqual(cross->attended, {2.5f, 2.5f / 256});
  EXPECT_EQ(*SerialiseModel(UnpackModel(**file)), *SerialiseModel(draft));
}

TEST(ValidateEncoder, QuantisersAreEverywhereOrNowhere) {
  const editable::Quantiser good(1.0f, 0.5f), bad(1.0f, 0.0f);
  const auto cross = [](EditableFile& file) -> editable::CrossAttentionT& {
    return *file.Decoder().layers[1]->cross_attention;
  };
  const HostileEdit edits[] = {
      {"layer 1, cross-attention, quantisers",
       [&](EditableFile& file) { cross(file).quantisers.reset(); }},
      {"block encoder, layer 0, quantisers",
       [](EditableFile& file) { Encoder(file).stack->layers[0]->quantisers.reset(); }},
      {"block decoder, output quantiser",
       [](EditableFile& file) {
         Encoder(file).stack->output.reset();
         for (auto& layer : Encoder(file).stack->layers) layer->quantisers.reset();
       }},
      {"layer 1, cross-attention, quantiser key_value",
       [&](EditableFile& file) {
         *cross(file).quantisers = {good, good, bad, good, good};
       }},
      {"layer 1, cross-attention, quantiser weights",
       [&](EditableFile& file) {
         *cross(file).quantisers = {good, good, good, bad, good};
       }},
  };
  ExpectRefused(edits, EditableFile::FromDraft(TinyTranslation({.bits = 9, .quantised = true})));

  // The encoder may have none if the decoder has none.
  EditableFile file = GoodTranslationFile();
  cross(file).quantisers =
      std::make_unique<editable::CrossAttentionQuantisers>(good, good, good, good, good);
  EXPECT_TRUE(
      IsRefusalOf(OpenStatus(file.Build()).message(), "layer 1, cross-attention, quantisers"));
}

TEST(ValidateEncoder, WhatMayNotBe) {
  const auto layer = [](EditableFile& file) -> editable::TransformerLayerT& {
    return *Encoder(file).stack->layers[0];
  };
  const auto cross = [](EditableFile& file) -> editable::CrossAttentionT& {
    return *file.Decoder().layers[1]->cross_attention;
  };
  const HostileEdit edits[] = {
      {"source_vocabulary, size", [](EditableFile& file) { Encoder(file).vocabulary_size = 12; }},
      {"block encoder, width", [](EditableFile& file) { Encoder(file).embedding->width = 8; }},
      {"block encoder, bin 0",
       [](EditableFile& file) { Encoder(file).embedding->bins[0]->size = 12; }},
      {"block encoder, bin 0, table",
       [](EditableFile& file) { Encoder(file).embedding->bins[0]->rows = 0xFFFFFFFF; }},
      {"block encoder, heads", [](EditableFile& file) { Encoder(file).stack->heads = 0; }},
      {"block encoder, layers", [](EditableFile& file) { Encoder(file).stack->layers.clear(); }},
      {"block encoder, position table",
       [](EditableFile& file) { Encoder(file).stack->window = 8; }},
      {"block encoder, layer 0, qkv_weight",
       [&](EditableFile& file) { layer(file).qkv_weight = 0xFFFFFFFF; }},
      {"block encoder, layer 0, cross-attention",
       [&](EditableFile& file) {
         layer(file).cross_attention = std::make_unique<editable::CrossAttentionT>();
       }},
      {"block encoder, stack, norm order",
       [](EditableFile& file) { Encoder(file).stack->norm_order = editable::NormOrder::Post; }},
      {"block encoder, stack, final norm",
       [](EditableFile& file) {
         Encoder(file).stack->final_norm_gain = flatbuffers::nullopt;
         Encoder(file).stack->final_norm_bias = flatbuffers::nullopt;
       }},
      {"block decoder, layer 1, cross-attention",
       [](EditableFile& file) { file.Decoder().layers[1]->cross_attention = nullptr; }},
      {"layer 1, cross-attention, norm_gain",
       [&](EditableFile& file) { cross(file).norm_gain = 0xFFFFFFFF; }},
      {"layer 1, cross-attention, norm_bias",
       [&](EditableFile& file) { cross(file).norm_bias = cross(file).query_weight; }},
      {"layer 1, cross-attention, query_weight",
       [&](EditableFile& file) { cross(file).query_weight = cross(file).out_weight; }},
      {"layer 1, cross-attention, query_bias",
       [&](EditableFile& file) { cross(file).query_bias = 0; }},
      {"layer 1, cross-attention, key_value_weight",
       [&](EditableFile& file) { cross(file).key_value_weight = cross(file).query_weight; }},
      {"layer 1, cross-attention, key_value_bias",
       [&](EditableFile& file) { cross(file).key_value_bias = 0; }},
      {"layer 1, cross-attention, out_weight",
       [&](EditableFile& file) { cross(file).out_weight = cross(file).query_weight; }},
      {"layer 1, cross-attention, out_bias", [&](EditableFile& file) { cross(file).out_bias = 0; }},
      {"start token", [](EditableFile& file) { file.header.start_token = flatbuffers::nullopt; }},
      {"golden vector, source ids",
       [](EditableFile& file) { file.header.golden->source_ids.clear(); }},
      {"golden vector, source ids",
       [](EditableFile& file) { file.header.golden->source_ids.assign(8, 0); }},
      {"golden vector, source id 1",
       [](EditableFile& file) { file.header.golden->source_ids[1] = 13; }},
  };
  ExpectRefused(edits, GoodTranslationFile());
}

// Without an encoder, cross-attention and source ids are refused.
TEST(ValidateEncoder, PartsOfOneWithoutTheOther) {
  const auto refused = [](const ModelDraft& draft, const std::string& where) {
    const auto bytes = SerialiseModel(draft);
    ASSERT_FALSE(bytes.ok()) << where;
    EXPECT_NE(bytes.status().message().find(where + ": expected"), std::string::npos)
        << bytes.status().message();
  };
  ModelDraft draft = TinyTranslation({.vocabulary = false});
  draft.description.blocks.pop_back();  // the encoder
  refused(draft, "block decoder, layer 0, cross-attention");

  draft = TinyTranslation();
  draft.description.blocks.emplace_back(NeuralCache{"cache", 4, 1.0, 0.5});
  refused(draft, "blocks");

  draft = TinyTranslation();
  draft.source_vocabulary.pop_back();
  refused(draft, "source vocabulary, size");

  draft = TinyTransformer();
  draft.source_vocabulary = {"a"};
  refused(draft, "source vocabulary, size");
  draft = TinyMicronet();
  draft.description.golden = GoldenVector{{4, 3}, {-1.0}, 0.5, {1}};
  refused(draft, "golden vector, source ids");

  draft = TinyTranslation();
  draft.description.blocks.push_back(draft.description.blocks.back());
  refused(draft, "blocks");
}

}  // namespace
}  // namespace kinglet::validate_encoder_test
