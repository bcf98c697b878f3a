#include "format/validate_recurrent.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>

#include "tests/format/hostile_edits.h"
#include "tests/support/recurrent_translation_builder.h"
#include "tests/support/unpack.h"

namespace kinglet::validate_recurrent_test {
namespace {

const float kNanFloat = std::nanf("");

TEST(ValidateRecurrent, Decoder) {
  const auto layer = [](EditableFile& file, size_t i) -> editable::RecurrentLayerT& {
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
         blocks[3]->transformer_decoder = std::make_unique<editable::TransformerDecoderT>();
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
       [&](EditableFile& file) { layer(file, 0).cell = editable::RecurrentCell::Lstm; }},
      {"block rnn, layer 2, projection",
       [&](EditableFile& file) { layer(file, 2).cell = editable::RecurrentCell::Tanh; }},
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
      {"block rnn, layer 2, recurrent weight",
       [&](EditableFile& file) { layer(file, 2).projection.reset(); }},
      {"block rnn, layer 1, projection",
       [&](EditableFile& file) {
         layer(file, 1).projection = std::move(layer(file, 2).projection);
       }},
      {"block rnn, layer 2, projection, weight",
       [&](EditableFile& file) { layer(file, 2).projection->outputs = 6; }},
      {"block rnn, layer 2, projection, weight",
       [&](EditableFile& file) { layer(file, 2).projection->weight = 1000; }},
      {"block rnn, layer 2, projection, weight",
       [&](EditableFile& file) {
         layer(file, 2).projection->weight = layer(file, 2).input_weight;
       }},
      {"block rnn, layer 2, projection, input quantiser",
       [&](EditableFile& file) { layer(file, 2).projection->input.reset(); }},
      {"block rnn, layer 2, projection, input quantiser",
       [&](EditableFile& file) {
         *layer(file, 2).projection->input = {1.0f, kNanFloat};
       }},
      {"block rnn, input quantiser",
       [](EditableFile& file) {
         *file.Recurrent().input = {-1.0f, 1.0f};
       }},
  };
  ExpectRefused(edits, GoodRecurrentFile());
}

EditableFile FileOf(const TinyRecurrentTranslationOptions& options) {
  return EditableFile::FromDraft(TinyRecurrentTranslation(options));
}
editable::RecurrentEncoderT& Encoder(EditableFile& file) {
  return *file.header.blocks[0]->recurrent_encoder;
}
editable::GlobalAttentionT& Attention(EditableFile& file) { return *file.Recurrent().attention; }

TEST(ValidateRecurrent, ModelsAreReadAsWritten) {
  for (const RecurrentCell cell : {RecurrentCell::kLstm, RecurrentCell::kGru}) {
    for (const bool several : {false, true}) {
      for (const std::optional<AttentionScore> score :
           {std::optional<AttentionScore>(), std::optional(AttentionScore::kDot),
            std::optional(AttentionScore::kGeneral), std::optional(AttentionScore::kMlp)}) {
        const ModelDraft draft = TinyRecurrentTranslation({.cell = cell,
                                                           .both_directions = several,
                                                           .bridge = several,
                                                           .input_feed = !several,
                                                           .attention = score,
                                                           .quantised = several});
        const auto bytes = SerialiseModel(draft);
        ASSERT_TRUE(bytes.ok()) << bytes.status().message();
        const auto file = ModelFile::FromBytes(*bytes);
        ASSERT_TRUE(file.ok()) << file.status().message();
        EXPECT_EQ(SourceVocabularySize((*file)->description()), 13u);
        const auto again = SerialiseModel(UnpackModel(**file));
        ASSERT_TRUE(again.ok()) << again.status().message();
        EXPECT_EQ(*again, *bytes);
      }
    }
  }
}

TEST(ValidateRecurrent, Encoder) {
  const HostileEdit edits[] = {
      {"block encoder",
       [](EditableFile& file) { file.header.blocks[0]->recurrent_encoder.reset(); }},
      {"blocks",
       [](EditableFile& file) {
         file.header.blocks.push_back(std::make_unique<editable::BlockT>(*file.header.blocks[0]));
       }},
      {"start token", [](EditableFile& file) { file.header.start_token = flatbuffers::nullopt; }},
      {"block encoder, vocabulary size",
       [](EditableFile& file) { Encoder(file).vocabulary_size = 0; }},
      {"block encoder, words", [](EditableFile& file) { Encoder(file).vocabulary_size = 14; }},
      {"block encoder, window", [](EditableFile& file) { Encoder(file).window = 0; }},
      {"block encoder, window", [](EditableFile& file) { Encoder(file).window = 0xFFFFFFFF; }},
      {"block encoder, forward layers", [](EditableFile& file) { Encoder(file).forward.clear(); }},
      {"block encoder, backward layers",
       [](EditableFile& file) { Encoder(file).backward.pop_back(); }},
      {"block encoder, forward layers",
       [](EditableFile& file) {
         Encoder(file).forward.pop_back();
         Encoder(file).backward.pop_back();
       }},
      {"block encoder, forward layer 0",
       [](EditableFile& file) { Encoder(file).backward.clear(); }},
      {"block encoder, width", [](EditableFile& file) { Encoder(file).embedding->width = 0; }},
      {"block encoder, forward layer 0, input weight",
       [](EditableFile& file) { Encoder(file).embedding->width = 7; }},
      {"block encoder, forward layer 1, input weight",
       [](EditableFile& file) { Encoder(file).forward[1]->input_weight = 1000; }},
      {"block encoder, backward layer 1, recurrent weight",
       [](EditableFile& file) {
         Encoder(file).backward[1]->recurrent_weight = flatbuffers::nullopt;
       }},
      {"block encoder, forward layer 0",
       [](EditableFile& file) { Encoder(file).forward[0]->units = 0; }},
      {"block encoder, forward layer 0",
       [](EditableFile& file) { Encoder(file).forward[0]->cell = editable::RecurrentCell::Qrnn; }},
      {"block encoder, backward layer 0, input weight",
       [](EditableFile& file) { Encoder(file).backward[0]->cell = editable::RecurrentCell::Gru; }},
      {"block encoder, backward layer 1",
       [](EditableFile& file) {
         *Encoder(file).backward[1]->output = {1, 0.25f};
       }},
      {"block encoder, forward layer 0, output quantiser",
       [](EditableFile& file) { Encoder(file).forward[0]->output.reset(); }},
      {"block encoder, input quantiser",
       [](EditableFile& file) {
         *Encoder(file).input = {1, kNanFloat};
       }},
      {"block encoder, bridge, cell weight",
       [](EditableFile& file) { Encoder(file).bridge->cell_weight = flatbuffers::nullopt; }},
      {"block encoder, bridge, hidden weight",
       [](EditableFile& file) { Encoder(file).bridge->hidden_weight = 0; }},
      {"block encoder, bridge, hidden bias",
       [](EditableFile& file) { Encoder(file).bridge->hidden_bias = 0xFFFFFFFE; }},
  };
  ExpectRefused(edits, FileOf({.bridge = true, .quantised = true}));
}

TEST(ValidateRecurrent, Attention) {
  const HostileEdit general[] = {
      {"block decoder, attention, query weight",
       [](EditableFile& file) { Attention(file).query_weight = flatbuffers::nullopt; }},
      {"block decoder, attention, query bias",
       [](EditableFile& file) { Attention(file).query_bias = 0; }},
      {"block decoder, attention, score weight",
       [](EditableFile& file) { Attention(file).score_weight = 0; }},
      {"block decoder, attention, memory weight",
       [](EditableFile& file) { Attention(file).score = editable::AttentionScore::Mlp; }},
      {"block decoder, attention, query weight",
       [](EditableFile& file) { Attention(file).score = editable::AttentionScore::Dot; }},
      {"block decoder, attention, out weight",
       [](EditableFile& file) { Attention(file).out_weight = 0; }},
      {"block decoder, attention, quantiser joined",
       [](EditableFile& file) { Attention(file).joined.reset(); }},
      {"block decoder, attention, quantiser weights",
       [](EditableFile& file) {
         *Attention(file).weights = {-1, 1};
       }},
      {"block decoder, layer 0, input weight",
       [](EditableFile& file) { file.Recurrent().input_feed = false; }},
      {"block encoder, forward layer 0, output quantiser",
       [](EditableFile& file) { Encoder(file).input.reset(); }},
  };
  ExpectRefused(general, FileOf({.quantised = true}));
  const HostileEdit additive[] = {
      {"block decoder, attention, score weight",
       [](EditableFile& file) { Attention(file).score_weight = Attention(file).out_bias; }},
      {"block decoder, attention, quantiser weights",
       [](EditableFile& file) {
         Attention(file).weights = std::make_unique<editable::Quantiser>(1.0f, 0.5f);
       }},
  };
  ExpectRefused(additive, FileOf({.attention = AttentionScore::kMlp, .quantised = true}));
  const HostileEdit alone[] = {
      {"block rnn, attention",
       [](EditableFile& file) {
         file.Recurrent().attention = std::make_unique<editable::GlobalAttentionT>();
       }},
      {"block rnn, layer 0, input weight",
       [](EditableFile& file) { file.Recurrent().input_feed = true; }},
  };
  ExpectRefused(alone, GoodRecurrentFile());
}

}  // namespace
}  // namespace kinglet::validate_recurrent_test
