#include "format/validate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "tests/format/hostile_edits.h"

namespace kinglet::validate_test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
const double kNan = std::nan("");

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
         blocks[0]->neural_cache = std::make_unique<editable::NeuralCacheT>(file.Cache());
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

TEST(ValidateTest, Softmax) {
  const HostileEdit edits[] = {
      {"block loss, width", [](EditableFile& file) { file.Softmax().width = 4; }},
      {"block loss, head, table", [](EditableFile& file) { file.Softmax().head_size = 0; }},
      {"block loss, head, table",
       [](EditableFile& file) { file.Softmax().head_rows = flatbuffers::nullopt; }},
      {"block loss, head, size",
       [](EditableFile& file) {
         file.Softmax().head_size = 0;
         file.Softmax().head_rows = flatbuffers::nullopt;
         file.Softmax().tails.clear();
         file.Softmax().cluster_weight = flatbuffers::nullopt;
       }},
      {"block loss, head, bias",
       [](EditableFile& file) {
         file.Softmax().head_size = 0;
         file.Softmax().head_rows = flatbuffers::nullopt;
       }},
      {"block loss, tail 0, first word",
       [](EditableFile& file) {
         file.Softmax().head_size = 0;
         file.Softmax().head_rows = flatbuffers::nullopt;
         file.Softmax().head_bias = flatbuffers::nullopt;
       }},
      {"block loss, head, projection",
       [](EditableFile& file) { file.Softmax().head_projection = 0xFFFFFFFE; }},
      // The head's rows have more columns than a tail's projection gives.
      {"block loss, head, projection",
       [](EditableFile& file) {
         file.Softmax().head_projection = file.Softmax().tails[0]->projection;
       }},
      // Without words in the head, the cluster rows give the number of columns.
      {"block loss, head, projection",
       [](EditableFile& file) {
         file.Softmax().head_size = 0;
         file.Softmax().head_rows = flatbuffers::nullopt;
         file.Softmax().head_bias = flatbuffers::nullopt;
         file.Softmax().head_projection = file.Softmax().tails[0]->projection;
       }},
      {"block loss, cluster weight",
       [](EditableFile& file) {
         file.Softmax().head_size = 0;
         file.Softmax().head_rows = flatbuffers::nullopt;
         file.Softmax().head_bias = flatbuffers::nullopt;
         file.Softmax().head_projection = file.Softmax().tails[0]->projection;
         file.Softmax().cluster_weight = 1000;
       }},
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
      // The embedding's projection has the transposed shape.
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
      {"start token", [](EditableFile& file) { file.header.start_token = 1; }},
      {"golden vector",
       [](EditableFile& file) {
         file.header.golden = std::make_unique<editable::GoldenT>();
         file.header.golden->ids = {1, 2};
         file.header.golden->log_probabilities = {-1};
       }},
      {"blocks", [](EditableFile& file) { file.header.blocks.erase(file.header.blocks.begin()); }},
      {"blocks",
       [](EditableFile& file) {
         file.header.blocks.push_back(
             std::make_unique<editable::BlockT>(*file.header.blocks.back()));
       }},
      {"blocks",  // a cache makes the model a language model
       [](EditableFile& file) {
         auto block = std::make_unique<editable::BlockT>();
         block->name = "cache";
         block->neural_cache = std::make_unique<editable::NeuralCacheT>();
         file.header.blocks.push_back(std::move(block));
       }},
  };
  ExpectRefused(edits, GoodClassifierFile());

  const HostileEdit classifier_with_decoder[] = {
      {"blocks",
       [](EditableFile& file) {
         auto block = std::make_unique<editable::BlockT>();
         block->name = "classifier";
         block->bag_classifier =
             std::make_unique<editable::BagClassifierT>(GoodClassifierFile().Classifier());
         file.header.blocks.push_back(std::move(block));
       }},
  };
  ExpectRefused(classifier_with_decoder);
}

TEST(ValidateTest, StartToken) {
  const HostileEdit edits[] = {
      {"start token", [](EditableFile& file) { file.header.start_token = 23; }},
      {"start token", [](EditableFile& file) { file.header.start_token = UINT32_MAX; }},
      // With a start token every id has a log-probability.
      {"golden vector, log-probabilities", [](EditableFile& file) { file.header.start_token = 2; }},
      {"golden vector, ids",
       [](EditableFile& file) {
         file.header.start_token = 2;
         file.header.golden->ids.clear();
         file.header.golden->log_probabilities.clear();
       }},
  };
  ExpectRefused(edits);
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
}  // namespace kinglet::validate_test
