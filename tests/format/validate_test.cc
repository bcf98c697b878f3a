#include "format/validate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "tests/format/hostile_edits.h"

namespace kinglet {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
const double kNan = std::nan("");
const float kNanFloat = std::nanf("");

TEST(ValidateTest, Blocks) {
  const HostileEdit edits[] = {
      {"vocabulary, size", [](EditableFile& file) { file.header.vocabulary_size = 24; }},
      {"vocabulary size",
       [](EditableFile& file) {
         file.header.vocabulary_size = 0;
         file.header.vocabulary->size = 0;
       }},
      {"vocabulary size",
       [](EditableFile& file) {
         file.header.vocabulary_size = 0x80000000;
         file.header.vocabulary->size = 0x80000000;
       }},
      {"block embed, words",
       [](EditableFile& file) {
         file.header.vocabulary_size = 24;
         file.header.vocabulary->size = 24;
       }},
      {"blocks", [](EditableFile& file) { file.header.blocks.clear(); }},
      {"blocks", [](EditableFile& file) { file.header.blocks.erase(file.header.blocks.begin()); }},
      {"blocks",
       [](EditableFile& file) { file.header.blocks.erase(file.header.blocks.begin() + 1); }},
      {"blocks",
       [](EditableFile& file) { file.header.blocks.erase(file.header.blocks.begin() + 2); }},
      {"blocks",
       [](EditableFile& file) {
         auto& blocks = file.header.blocks;
         blocks[0]->adaptive_embedding.reset();
         blocks[0]->neural_cache = std::make_unique<schema::NeuralCacheT>(file.Cache());
       }},
      {"block 1, name", [](EditableFile& file) { file.header.blocks[1]->name = "a\nb"; }},
  };
  ExpectRefused(edits);
}

TEST(ValidateTest, Embedding) {
  const HostileEdit edits[] = {
      {"block embed, width", [](EditableFile& file) { file.Embedding().width = 0; }},
      {"block embed, width", [](EditableFile& file) { file.Embedding().width = 9; }},
      {"block embed, width", [](EditableFile& file) { file.Embedding().width = 0xFFFFFFFF; }},
      {"block embed, scale", [](EditableFile& file) { file.Embedding().scale = 0; }},
      {"block embed, scale", [](EditableFile& file) { file.Embedding().scale = -1; }},
      {"block embed, scale", [](EditableFile& file) { file.Embedding().scale = kNan; }},
      {"block embed, scale", [](EditableFile& file) { file.Embedding().scale = kInfinity; }},
      {"block embed, bins", [](EditableFile& file) { file.Embedding().bins.clear(); }},
      {"block embed, words", [](EditableFile& file) { file.Embedding().bins.pop_back(); }},
      {"block embed, bin 0, first word",
       [](EditableFile& file) { file.Embedding().bins[0]->first = 1; }},
      {"block embed, bin 1, first word",
       [](EditableFile& file) { file.Embedding().bins[1]->first += 1; }},
      {"block embed, bin 1, first word",
       [](EditableFile& file) { file.Embedding().bins[1]->first = 0; }},
      {"block embed, bin 2, size", [](EditableFile& file) { file.Embedding().bins[2]->size += 1; }},
      {"block embed, bin 2, size",
       [](EditableFile& file) { file.Embedding().bins[2]->size = 0xFFFFFFFF; }},
      {"block embed, bin 0, size", [](EditableFile& file) { file.Embedding().bins[0]->size = 0; }},
      {"block embed, bin 1, table",
       [](EditableFile& file) { file.Embedding().bins[1]->rows = 1000; }},
      {"block embed, bin 1, table", [](EditableFile& file) { file.Embedding().bins[1]->rows = 0; }},
      {"block embed, bin 1, table",
       [](EditableFile& file) { file.Embedding().bins[1]->projection = flatbuffers::nullopt; }},
      {"block embed, bin 1, projection",
       [](EditableFile& file) { file.Embedding().bins[1]->projection = 0xFFFFFFFF; }},
      {"block embed, bin 1, projection",
       [](EditableFile& file) {
         file.Embedding().bins[1]->projection = file.Embedding().bins[2]->projection;
       }},
  };
  ExpectRefused(edits);
}

TEST(ValidateTest, Decoder) {
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

TEST(ValidateTest, Quantisers) {
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

TEST(ValidateTest, Softmax) {
  const HostileEdit edits[] = {
      {"block loss, width", [](EditableFile& file) { file.Softmax().width = 4; }},
      {"block loss, head, size", [](EditableFile& file) { file.Softmax().head_size = 0; }},
      {"block loss, head, size", [](EditableFile& file) { file.Softmax().head_size = 0xFFFFFFFF; }},
      {"block loss, head, table", [](EditableFile& file) { file.Softmax().head_size = 4; }},
      {"block loss, head, table", [](EditableFile& file) { file.Softmax().head_rows = 1000; }},
      {"block loss, head, bias", [](EditableFile& file) { file.Softmax().head_bias = 1000; }},
      {"block loss, head, bias", [](EditableFile& file) { file.Softmax().head_bias = 0; }},
      {"block loss, cluster weight",
       [](EditableFile& file) { file.Softmax().cluster_weight = flatbuffers::nullopt; }},
      {"block loss, cluster weight", [](EditableFile& file) { file.Softmax().cluster_weight = 0; }},
      {"block loss, cluster bias", [](EditableFile& file) { file.Softmax().cluster_bias = 0; }},
      {"block loss, cluster bias",
       [](EditableFile& file) { file.Softmax().cluster_bias = 0xFFFFFFFF; }},
      {"block loss, cluster weight", [](EditableFile& file) { file.Softmax().tails.clear(); }},
      {"block loss, cluster bias",
       [](EditableFile& file) {
         file.Softmax().tails.clear();
         file.Softmax().cluster_weight = flatbuffers::nullopt;
       }},
      {"block loss, words",
       [](EditableFile& file) {
         file.Softmax().tails.clear();
         file.Softmax().cluster_weight = flatbuffers::nullopt;
         file.Softmax().cluster_bias = flatbuffers::nullopt;
       }},
      {"block loss, tail 0, first word",
       [](EditableFile& file) { file.Softmax().tails[0]->first += 1; }},
      {"block loss, tail 0, first word",
       [](EditableFile& file) { std::swap(file.Softmax().tails[0], file.Softmax().tails[1]); }},
      {"block loss, tail 1, size", [](EditableFile& file) { file.Softmax().tails[1]->size += 1; }},
      {"block loss, tail 1, size", [](EditableFile& file) { file.Softmax().tails[1]->size = 0; }},
      {"block loss, tail 0, table", [](EditableFile& file) { file.Softmax().tails[0]->rows = 0; }},
      {"block loss, tail 0, table",
       [](EditableFile& file) { file.Softmax().tails[0]->projection = flatbuffers::nullopt; }},
      // The embedding's projection is the other way round.
      {"block loss, tail 0, projection",
       [](EditableFile& file) {
         file.Softmax().tails[0]->projection = file.Embedding().bins[1]->projection;
       }},
      {"block loss, tail 0, projection",
       [](EditableFile& file) { file.Softmax().tails[0]->projection = 1000; }},
      {"block loss, tail 0, bias", [](EditableFile& file) { file.Softmax().tails[0]->bias = 0; }},
      {"block loss, tail 0, cluster row",
       [](EditableFile& file) { file.Softmax().tails[0]->cluster_row = 2; }},
      {"block loss, tail 0, cluster row",
       [](EditableFile& file) { file.Softmax().tails[0]->cluster_row = 0xFFFFFFFF; }},
      {"block loss, tail 1, cluster row",
       [](EditableFile& file) { file.Softmax().tails[1]->cluster_row = 1; }},
  };
  ExpectRefused(edits);
}

TEST(ValidateTest, NeuralCache) {
  const HostileEdit edits[] = {
      {"block cache, capacity", [](EditableFile& file) { file.Cache().capacity = 0; }},
      {"block cache, capacity", [](EditableFile& file) { file.Cache().capacity = (1 << 20) + 1; }},
      {"block cache, theta", [](EditableFile& file) { file.Cache().theta = 0; }},
      {"block cache, theta", [](EditableFile& file) { file.Cache().theta = -1; }},
      {"block cache, theta", [](EditableFile& file) { file.Cache().theta = kNan; }},
      {"block cache, theta", [](EditableFile& file) { file.Cache().theta = kInfinity; }},
      {"block cache, lambda", [](EditableFile& file) { file.Cache().lambda = 0; }},
      {"block cache, lambda", [](EditableFile& file) { file.Cache().lambda = 1; }},
      {"block cache, lambda", [](EditableFile& file) { file.Cache().lambda = kNan; }},
  };
  ExpectRefused(edits);
}

TEST(ValidateTest, RecurrentDecoder) {
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

TEST(ValidateTest, Classifier) {
  const auto wrong = [](EditableFile& file) -> uint32_t {
    return static_cast<uint32_t>(file.header.tensors.size());
  };
  const HostileEdit edits[] = {
      {"block embedding, width", [](EditableFile& file) { file.Embedding().width = 0; }},
      {"block embedding, bin 0, table", [](EditableFile& file) { file.Embedding().width = 5; }},
      {"block classifier, classes", [](EditableFile& file) { file.Classifier().classes = 0; }},
      {"block classifier, classes",
       [](EditableFile& file) { file.Classifier().classes = UINT32_MAX; }},
      {"block classifier, weight", [](EditableFile& file) { file.Classifier().classes = 3; }},
      {"block classifier, padding", [](EditableFile& file) { file.Classifier().padding = 23; }},
      {"block classifier, hidden weight",
       [](EditableFile& file) { file.Classifier().max_pool = false; }},
      {"block classifier, hidden weight",
       [&](EditableFile& file) { file.Classifier().hidden->weight = wrong(file); }},
      {"block classifier, input scale",
       [&](EditableFile& file) { file.Classifier().hidden->input_scale = wrong(file); }},
      {"block classifier, input shift",
       [](EditableFile& file) {
         file.Classifier().hidden->input_shift = file.Classifier().hidden->output_shift;
       }},
      {"block classifier, hidden bias",
       [](EditableFile& file) {
         file.Classifier().hidden->bias = file.Classifier().hidden->input_scale;
       }},
      {"block classifier, output scale",
       [](EditableFile& file) { file.Classifier().hidden->output_scale = 0; }},
      {"block classifier, output shift",
       [&](EditableFile& file) { file.Classifier().hidden->output_shift = wrong(file); }},
      {"block classifier, weight", [](EditableFile& file) { file.Classifier().hidden.reset(); }},
      {"block classifier, weight",
       [&](EditableFile& file) { file.Classifier().weight = wrong(file); }},
      {"block classifier, bias", [&](EditableFile& file) { file.Classifier().bias = wrong(file); }},
      {"golden vector",
       [](EditableFile& file) {
         file.header.golden = std::make_unique<schema::GoldenT>();
         file.header.golden->ids = {1, 2};
         file.header.golden->log_probabilities = {-1};
       }},
      {"blocks", [](EditableFile& file) { file.header.blocks.erase(file.header.blocks.begin()); }},
      {"blocks",
       [](EditableFile& file) {
         file.header.blocks.push_back(std::make_unique<schema::BlockT>(*file.header.blocks.back()));
       }},
      {"blocks",  // a cache makes it a language model
       [](EditableFile& file) {
         auto block = std::make_unique<schema::BlockT>();
         block->name = "cache";
         block->neural_cache = std::make_unique<schema::NeuralCacheT>();
         file.header.blocks.push_back(std::move(block));
       }},
  };
  ExpectRefused(edits, GoodClassifierFile());

  const HostileEdit beside[] = {
      {"blocks",
       [](EditableFile& file) {
         auto block = std::make_unique<schema::BlockT>();
         block->name = "classifier";
         block->bag_classifier =
             std::make_unique<schema::BagClassifierT>(GoodClassifierFile().Classifier());
         file.header.blocks.push_back(std::move(block));
       }},
  };
  ExpectRefused(beside);
}

TEST(ValidateTest, Golden) {
  const HostileEdit edits[] = {
      {"golden vector, ids",
       [](EditableFile& file) {
         file.header.golden->ids.resize(1);
         file.header.golden->log_probabilities.clear();
       }},
      {"golden vector, log-probabilities",
       [](EditableFile& file) { file.header.golden->log_probabilities.push_back(-1); }},
      {"golden vector, log-probabilities",
       [](EditableFile& file) { file.header.golden->log_probabilities.clear(); }},
      {"golden vector, id 1", [](EditableFile& file) { file.header.golden->ids[1] = 23; }},
      {"golden vector, log-probability 1",
       [](EditableFile& file) { file.header.golden->log_probabilities[1] = 0.5; }},
      {"golden vector, log-probability 1",
       [](EditableFile& file) { file.header.golden->log_probabilities[1] = kNan; }},
      {"golden vector, log-probability 1",
       [](EditableFile& file) { file.header.golden->log_probabilities[1] = -kInfinity; }},
      {"golden vector, tolerance",
       [](EditableFile& file) { file.header.golden->tolerance = -0.1; }},
      {"golden vector, tolerance",
       [](EditableFile& file) { file.header.golden->tolerance = kNan; }},
  };
  ExpectRefused(edits);
}

}  // namespace
}  // namespace kinglet
