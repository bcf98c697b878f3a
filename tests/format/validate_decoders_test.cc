#include "format/validate_decoders.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>

#include "tests/format/hostile_edits.h"
#include "tests/support/transformer_builder.h"

namespace kinglet::validate_decoders_test {
namespace {

const float kNanFloat = std::nanf("");

TEST(ValidateDecoders, Decoder) {
  const HostileEdit edits[] = {
      {"block embed, width", [](EditableFile& file) { file.Decoder().width = 0; }},
      {"block decoder, width",
       [](EditableFile& file) {
         std::swap(file.header.blocks[0], file.header.blocks[1]);
         file.Decoder().width = 0;
       }},
      {"block decoder, heads", [](EditableFile& file) { file.Decoder().heads = 0; }},
      {"block decoder, key size", [](EditableFile& file) { file.Decoder().key_size = 0; }},
      {"block decoder, value size", [](EditableFile& file) { file.Decoder().value_size = 0; }},
      {"block decoder, window", [](EditableFile& file) { file.Decoder().window = 0; }},
      {"block decoder, layers", [](EditableFile& file) { file.Decoder().layers.clear(); }},
      {"layer 0, qkv_weight", [](EditableFile& file) { file.Decoder().heads = 3; }},
      // The largest extents that are allowed: their products must not overflow.
      {"layer 0, qkv_weight",
       [](EditableFile& file) {
         file.Decoder().heads = 1 << 20;
         file.Decoder().key_size = 1 << 20;
         file.Decoder().value_size = 1 << 20;
       }},
      {"block decoder, heads", [](EditableFile& file) { file.Decoder().heads = (1 << 20) + 1; }},
      {"block decoder, window", [](EditableFile& file) { file.Decoder().window = 0x7FFFFFFF; }},
      {"layer 0, positions", [](EditableFile& file) { file.Decoder().window = 7; }},
      // The 2 (2 * 3 + 5) rows also fit sizes 2 and 7: 2 (2 * 2 + 7). The other tensors do not.
      {"layer 0, out_weight",
       [](EditableFile& file) {
         file.Decoder().key_size = 2;
         file.Decoder().value_size = 7;
       }},
      {"layer 0, out_weight",
       [](EditableFile& file) {
         file.Decoder().layers[0]->out_weight = file.Decoder().layers[0]->outer_weight;
       }},
      {"layer 1, attention_norm_gain",
       [](EditableFile& file) { file.Decoder().layers[1]->attention_norm_gain = 0xFFFFFFFF; }},
      {"layer 1, attention_norm_bias",
       [](EditableFile& file) { file.Decoder().layers[1]->attention_norm_bias = 0; }},
      {"layer 0, qkv_weight",
       [](EditableFile& file) { file.Decoder().layers[0]->qkv_weight = 1000; }},
      {"layer 0, qkv_bias", [](EditableFile& file) { file.Decoder().layers[0]->qkv_bias = 0; }},
      {"layer 0, positions", [](EditableFile& file) { file.Decoder().layers[0]->positions = 0; }},
      {"layer 0, inner_norm_gain",
       [](EditableFile& file) { file.Decoder().layers[0]->inner_norm_gain = 0; }},
      {"layer 0, inner_norm_bias",
       [](EditableFile& file) { file.Decoder().layers[0]->inner_norm_bias = 0; }},
      {"layer 0, inner_weight",
       [](EditableFile& file) { file.Decoder().layers[0]->inner_weight = 1000; }},
      // A vector in place of a matrix.
      {"layer 0, inner_weight",
       [](EditableFile& file) {
         file.Decoder().layers[0]->inner_weight = file.Decoder().layers[0]->inner_bias;
       }},
      {"layer 0, inner_bias", [](EditableFile& file) { file.Decoder().layers[0]->inner_bias = 0; }},
      {"layer 0, outer_weight",
       [](EditableFile& file) { file.Decoder().layers[0]->outer_weight = 0; }},
      {"layer 0, outer_bias", [](EditableFile& file) { file.Decoder().layers[0]->outer_bias = 0; }},
  };
  ExpectRefused(edits);
}

editable::TransformerLayerQuantisers Quantisers(const editable::Quantiser& inner) {
  const editable::Quantiser good(1.0f, 0.1f);
  return {good, good, good, good, good, inner, good};
}

TEST(ValidateDecoders, Quantisers) {
  const auto set_inner = [](float max_abs, float scale) {
    return [max_abs, scale](EditableFile& file) {
      *file.Decoder().layers[1]->quantisers = Quantisers({max_abs, scale});
    };
  };
  const HostileEdit edits[] = {
      {"layer 1, quantisers",
       [](EditableFile& file) { file.Decoder().layers[1]->quantisers.reset(); }},
      {"layer 0, quantisers", [](EditableFile& file) { file.Decoder().output.reset(); }},
      {"output quantiser",
       [](EditableFile& file) { *file.Decoder().output = editable::Quantiser(1.0f, 0.0f); }},
      {"layer 1, quantiser inner", set_inner(0.0f, 0.1f)},
      {"layer 1, quantiser inner", set_inner(-1.0f, 0.1f)},
      {"layer 1, quantiser inner", set_inner(kNanFloat, 0.1f)},
      {"layer 1, quantiser inner", set_inner(1.0f, kNanFloat)},
      {"layer 1, quantiser inner", set_inner(1.0f, -0.1f)},
      {"layer 1, quantiser inner", set_inner(std::numeric_limits<float>::infinity(), 0.1f)},
      {"layer 1, quantiser inner", set_inner(1.0f, std::numeric_limits<float>::infinity())},
      {"layer 1, quantiser inner", set_inner(1.0f, 0x1p-21f)},
  };
  ExpectRefused(edits);
  EditableFile file = GoodFile();
  set_inner(1.0f, 0x1p-20f)(file);
  EXPECT_TRUE(OpenStatus(file.Build()).ok()) << "2^20 levels are allowed";
}

TEST(ValidateDecoders, Transformers) {
  const auto layer = [](EditableFile& file, size_t i) -> editable::TransformerLayerT& {
    return *file.Decoder().layers[i];
  };
  const HostileEdit edits[] = {
      {"block decoder, norm order",
       [](EditableFile& file) { file.Decoder().norm_order = static_cast<editable::NormOrder>(3); }},
      {"block decoder, epsilon", [](EditableFile& file) { file.Decoder().epsilon = 0; }},
      {"block decoder, epsilon", [](EditableFile& file) { file.Decoder().epsilon = -1e-5; }},
      {"block decoder, epsilon", [](EditableFile& file) { file.Decoder().epsilon = kNanFloat; }},
      {"block decoder, final norm",
       [](EditableFile& file) { file.Decoder().final_norm_bias = flatbuffers::nullopt; }},
      {"block decoder, final_norm_gain",
       [](EditableFile& file) { file.Decoder().final_norm_gain = 0xFFFFFFFF; }},
      {"block decoder, final_norm_bias",
       [](EditableFile& file) { file.Decoder().final_norm_bias = 0; }},
      {"layer 0, qkv_bias", [&](EditableFile& file) { layer(file, 0).qkv_bias = 0; }},
      {"layer 1, out_bias",
       [&](EditableFile& file) { layer(file, 1).out_bias = layer(file, 1).qkv_bias; }},
      {"layer 1, start",
       [&](EditableFile& file) { layer(file, 1).start = layer(file, 1).qkv_bias; }},
      {"layer 0, start",
       [](EditableFile& file) { file.Decoder().start = editable::StreamStart::Masked; }},
      {"layer 0, start",
       [](EditableFile& file) { file.Decoder().norm_order = editable::NormOrder::Post; }},
      // Width 8 and 4 columns per head: the largest extent must not overflow.
      {"layer 0, qkv_weight", [](EditableFile& file) { file.Decoder().heads = 1 << 20; }},
  };
  ExpectRefused(edits, GoodTransformerFile());
}

TEST(ValidateDecoders, Positions) {
  const auto layer = [](EditableFile& file, size_t i) -> editable::TransformerLayerT& {
    return *file.Decoder().layers[i];
  };
  const auto set_frequency = [](float value) {
    return [value](EditableFile& file) {
      std::memcpy(&file.Values("pos_emb.inv_freq")[4], &value, sizeof(value));
    };
  };
  const HostileEdit edits[] = {
      {"block decoder, positions",
       [](EditableFile& file) {
         file.Decoder().position_table = std::make_unique<editable::PositionTableT>();
       }},
      // Rows of distances: opening would take time and memory that the file's size does not bound.
      {"block decoder, window",
       [](EditableFile& file) {
         file.Decoder().relative_sinusoids->clamp = flatbuffers::nullopt;
         file.Decoder().window = 1 << 20;
       }},
      {"block decoder, clamp",
       [](EditableFile& file) { file.Decoder().relative_sinusoids->clamp = (1 << 20) + 1; }},
      {"block decoder, frequencies",
       [](EditableFile& file) { file.Decoder().relative_sinusoids->frequencies = 1000; }},
      {"block decoder, frequencies",
       [&](EditableFile& file) {
         file.Decoder().relative_sinusoids->frequencies = layer(file, 0).attention_norm_gain;
       }},
      {"block decoder, frequency 1", set_frequency(-0.5f)},
      {"block decoder, frequency 1", set_frequency(4.5f)},
      // A value that is not finite is refused, as in every tensor.
      {"tensor pos_emb.inv_freq", set_frequency(kNanFloat)},
      {"layer 0, positions",
       [&](EditableFile& file) { layer(file, 0).positions = flatbuffers::nullopt; }},
      {"layer 1, positions",
       [&](EditableFile& file) { layer(file, 1).positions = layer(file, 1).qkv_weight; }},
      {"layer 1, content_bias",
       [&](EditableFile& file) { layer(file, 1).content_bias = flatbuffers::nullopt; }},
      {"layer 1, content_bias",
       [&](EditableFile& file) { layer(file, 1).content_bias = layer(file, 1).positions; }},
      {"layer 0, position_bias",
       [&](EditableFile& file) { layer(file, 0).position_bias = flatbuffers::nullopt; }},
      {"layer 0, position_bias",
       [&](EditableFile& file) { layer(file, 0).position_bias = 0xFFFFFFFF; }},
      // Columns of window slots are [key_size, window].
      {"layer 0, positions", [](EditableFile& file) { file.Decoder().relative_sinusoids.reset(); }},
      // With absolute positions layers have none of these tensors, and the start is masked.
      {"block decoder, start",
       [](EditableFile& file) {
         const uint32_t frequencies = file.Decoder().relative_sinusoids->frequencies;
         file.Decoder().relative_sinusoids.reset();
         file.Decoder().absolute_sinusoids = std::make_unique<editable::AbsoluteSinusoidsT>();
         file.Decoder().absolute_sinusoids->frequencies = frequencies;
       }},
      {"layer 0, positions",
       [](EditableFile& file) {
         const uint32_t frequencies = file.Decoder().relative_sinusoids->frequencies;
         file.Decoder().relative_sinusoids.reset();
         file.Decoder().absolute_sinusoids = std::make_unique<editable::AbsoluteSinusoidsT>();
         file.Decoder().absolute_sinusoids->frequencies = frequencies;
         file.Decoder().start = editable::StreamStart::Masked;
       }},
  };
  ExpectRefused(edits, GoodTransformerFile());

  const HostileEdit absolute[] = {
      {"block decoder, first position",
       [](EditableFile& file) { file.Decoder().absolute_sinusoids->first = 0xFFFFFFFF; }},
      {"block decoder, frequency 1", set_frequency(5)},
      {"layer 0, content_bias",
       [&](EditableFile& file) { layer(file, 0).content_bias = layer(file, 0).qkv_weight; }},
  };
  ExpectRefused(absolute,
                EditableFile::FromDraft(TinyTransformer({.positions = TinyPositions::kAbsolute})));

  const HostileEdit table[] = {
      {"block decoder, position table",
       [](EditableFile& file) { file.Decoder().position_table->rows = 1000; }},
      {"block decoder, position table", [](EditableFile& file) { file.Decoder().window = 6; }},
  };
  ExpectRefused(table,
                EditableFile::FromDraft(TinyTransformer({.positions = TinyPositions::kTable})));
}

TEST(ValidateDecoders, OddWidthsHaveNoSinusoids) {
  ModelDraft draft = TinyTransformer({.positions = TinyPositions::kTable, .width = 7});
  EXPECT_TRUE(SerialiseModel(draft).ok());
  auto& decoder = std::get<TransformerDecoder>(draft.description.blocks[1]);
  decoder.positions = AbsoluteSinusoids{0, 0};
  EXPECT_EQ(
      SerialiseModel(draft).status().message(),
      "model draft: block decoder, width: expected an even number, half of it sines, found 7");
}

}  // namespace
}  // namespace kinglet::validate_decoders_test
