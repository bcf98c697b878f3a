#include "format/validate_decoders.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "tests/format/hostile_edits.h"

namespace kinglet {
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
      // The largest extents there may be: their products must not wrap.
      {"layer 0, qkv_weight",
       [](EditableFile& file) {
         file.Decoder().heads = 1 << 20;
         file.Decoder().key_size = 1 << 20;
         file.Decoder().value_size = 1 << 20;
       }},
      {"block decoder, heads", [](EditableFile& file) { file.Decoder().heads = (1 << 20) + 1; }},
      {"block decoder, window", [](EditableFile& file) { file.Decoder().window = 0x7FFFFFFF; }},
      {"layer 0, positions", [](EditableFile& file) { file.Decoder().window = 7; }},
      // 2 (2 * 3 + 5) rows are also 2 (2 * 2 + 7), which the other tensors contradict.
      {"layer 0, positions",
       [](EditableFile& file) {
         file.Decoder().key_size = 2;
         file.Decoder().value_size = 7;
       }},
      {"layer 0, out_weight",
       [](EditableFile& file) {
         file.Decoder().layers[0]->out_weight = file.Decoder().layers[0]->fc3_weight;
       }},
      {"layer 1, norm1_gain",
       [](EditableFile& file) { file.Decoder().layers[1]->norm1_gain = 0xFFFFFFFF; }},
      {"layer 1, norm1_bias", [](EditableFile& file) { file.Decoder().layers[1]->norm1_bias = 0; }},
      {"layer 0, qkv_weight",
       [](EditableFile& file) { file.Decoder().layers[0]->qkv_weight = 1000; }},
      {"layer 0, qkv_bias", [](EditableFile& file) { file.Decoder().layers[0]->qkv_bias = 0; }},
      {"layer 0, positions", [](EditableFile& file) { file.Decoder().layers[0]->positions = 0; }},
      {"layer 0, norm2_gain", [](EditableFile& file) { file.Decoder().layers[0]->norm2_gain = 0; }},
      {"layer 0, norm2_bias", [](EditableFile& file) { file.Decoder().layers[0]->norm2_bias = 0; }},
      {"layer 0, fc0_weight",
       [](EditableFile& file) { file.Decoder().layers[0]->fc0_weight = 1000; }},
      // A vector where a matrix must be.
      {"layer 0, fc0_weight",
       [](EditableFile& file) {
         file.Decoder().layers[0]->fc0_weight = file.Decoder().layers[0]->fc0_bias;
       }},
      {"layer 0, fc0_bias", [](EditableFile& file) { file.Decoder().layers[0]->fc0_bias = 0; }},
      {"layer 0, fc3_weight", [](EditableFile& file) { file.Decoder().layers[0]->fc3_weight = 0; }},
      {"layer 0, fc3_bias", [](EditableFile& file) { file.Decoder().layers[0]->fc3_bias = 0; }},
  };
  ExpectRefused(edits);
}

schema::MicronetLayerQuantisers Quantisers(const schema::Quantiser& inner) {
  const schema::Quantiser good(1.0f, 0.1f);
  return {good, good, good, good, good, inner, good};
}

TEST(ValidateDecoders, Quantisers) {
  const auto set_inner = [](float max_abs, float step) {
    return [max_abs, step](EditableFile& file) {
      *file.Decoder().layers[1]->quantisers = Quantisers({max_abs, step});
    };
  };
  const HostileEdit edits[] = {
      {"layer 1, quantisers",
       [](EditableFile& file) { file.Decoder().layers[1]->quantisers.reset(); }},
      {"layer 0, quantisers", [](EditableFile& file) { file.Decoder().output.reset(); }},
      {"output quantiser",
       [](EditableFile& file) { *file.Decoder().output = schema::Quantiser(1.0f, 0.0f); }},
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

TEST(ValidateDecoders, RecurrentDecoder) {
  const auto layer = [](EditableFile& file, size_t i) -> schema::RecurrentLayerT& {
    return *file.Recurrent().layers[i];
  };
  const HostileEdit edits[] = {
      {"blocks",
       [](EditableFile& file) { file.header.blocks.erase(file.header.blocks.begin() + 1); }},
      {"blocks",
       [](EditableFile& file) {
         // Two decoders of different kinds.
         auto& blocks = file.header.blocks;
         blocks[3]->neural_cache.reset();
         blocks[3]->micronet_decoder = std::make_unique<schema::MicronetDecoderT>();
       }},
      {"block encoder, width", [](EditableFile& file) { file.Recurrent().inputs = 7; }},
      {"block encoder, width", [](EditableFile& file) { file.Recurrent().inputs = 0; }},
      {"block decoder, width", [](EditableFile& file) { file.Softmax().width = 6; }},
      {"block decoder, width", [](EditableFile& file) { file.Recurrent().layers.pop_back(); }},
      {"block rnn, layers", [](EditableFile& file) { file.Recurrent().layers.clear(); }},
      {"block rnn, layer 0, units", [&](EditableFile& file) { layer(file, 0).units = 0; }},
      {"block rnn, layer 1, units", [&](EditableFile& file) { layer(file, 1).units = 0xFFFFFFFF; }},
      {"block rnn, layer 1, input weight", [&](EditableFile& file) { layer(file, 1).units = 8; }},
      {"block rnn, layer 0, input weight",
       [&](EditableFile& file) { layer(file, 0).input_weight = 1000; }},
      {"block rnn, layer 0, input weight",
       [&](EditableFile& file) { layer(file, 0).cell = schema::RecurrentCell::Lstm; }},
      {"block rnn, layer 2, input weight",
       [&](EditableFile& file) { layer(file, 2).cell = schema::RecurrentCell::Tanh; }},
      {"block rnn, layer 1, input bias",
       [&](EditableFile& file) { layer(file, 1).input_bias = layer(file, 2).input_bias; }},
      {"block rnn, layer 1, recurrent bias",
       [&](EditableFile& file) { layer(file, 1).recurrent_bias = 0xFFFFFFFF; }},
      {"block rnn, layer 2, recurrent weight",
       [&](EditableFile& file) { layer(file, 2).recurrent_weight = flatbuffers::nullopt; }},
      {"block rnn, layer 0, recurrent weight",
       [&](EditableFile& file) {
         layer(file, 0).recurrent_weight = layer(file, 1).recurrent_weight;
       }},
      {"block rnn, layer 0, recurrent bias",
       [&](EditableFile& file) { layer(file, 0).recurrent_bias = layer(file, 0).input_bias; }},
      {"block rnn, layer 1, output quantiser",
       [&](EditableFile& file) { layer(file, 1).output.reset(); }},
      {"block rnn, layer 1, output quantiser",
       [&](EditableFile& file) {
         *layer(file, 1).output = {kNanFloat, 1.0f};
       }},
      {"block rnn, layer 2, output quantiser",
       [&](EditableFile& file) {
         *layer(file, 2).output = {1.0f, 0.0f};
       }},
      {"block rnn, layer 2, output quantiser",
       [&](EditableFile& file) {
         *layer(file, 2).output = {1.0f, 1e-9f};
       }},
      {"block rnn, layer 0, output quantiser",
       [](EditableFile& file) { file.Recurrent().input.reset(); }},
      {"block rnn, input quantiser",
       [](EditableFile& file) {
         *file.Recurrent().input = {-1.0f, 1.0f};
       }},
  };
  ExpectRefused(edits, GoodRecurrentFile());
}

}  // namespace
}  // namespace kinglet
