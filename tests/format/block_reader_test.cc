#include "format/block_reader.h"

#include <gtest/gtest.h>

#include <memory>

#include "format/limits.h"
#include "tests/format/hostile_edits.h"

namespace kinglet {
namespace {

TEST(BlockReader, EnumeratorsOfRecurrentModels) {
  const HostileEdit edits[] = {
      {"block rnn, cell of layer 1",
       [](EditableFile& file) {
         file.Recurrent().layers[1]->cell = static_cast<schema::RecurrentCell>(5);
       }},
      {"block cache, start",
       [](EditableFile& file) { file.Cache().start = static_cast<schema::CacheStart>(2); }},
      {"block rnn, layers",
       [](EditableFile& file) {
         while (file.Recurrent().layers.size() <= 4096) {
           file.Recurrent().layers.push_back(
               std::make_unique<schema::RecurrentLayerT>(*file.Recurrent().layers[0]));
         }
       }},
      {"block rnn",
       [](EditableFile& file) {
         file.header.blocks[1]->neural_cache = std::make_unique<schema::NeuralCacheT>(file.Cache());
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
             std::make_unique<schema::AdaptiveEmbeddingT>(file.Embedding());
       }},
      {"block embedding, bins",
       [](EditableFile& file) {
         while (file.Embedding().bins.size() <= kMaxBins) {
           file.Embedding().bins.push_back(
               std::make_unique<schema::EmbeddingBinT>(*file.Embedding().bins[0]));
         }
       }},
  };
  ExpectRefused(edits, GoodClassifierFile());
}

}  // namespace
}  // namespace kinglet
