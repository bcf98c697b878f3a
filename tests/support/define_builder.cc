#include "tests/support/define_builder.h"

#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "tests/support/define_units.h"
#include "tests/support/recurrent_builder.h"
#include "tests/support/tensor_maker.h"

namespace kinglet {
namespace {

class DefineModelBuilder : TensorMaker {
 public:
  DefineModelBuilder(const TinyDefineOptions& options, ModelDraft& draft)
      : TensorMaker(draft, options.seed), options_(options), unit_(options.unit) {
    if (unit_.map_width == 0) unit_ = DefineUnits()[4].unit;
  }

  void Build() {
    const uint32_t words = options_.vocabulary_size;
    if (options_.decoder) {
      TinyRecurrentOptions recurrent;
      recurrent.inputs = static_cast<uint32_t>(OutputWidth(unit_));
      recurrent.vocabulary_size = words;
      recurrent.bits = options_.bits;
      draft_ = TinyRecurrent(recurrent);
    } else {
      draft_.description.provenance = {"kinglet tests", "recipe", "m", std::string(32, '0'), ""};
      draft_.description.vocabulary_size = words;
      draft_.description.blocks.emplace_back(AdaptiveEmbedding{});
      Matrix("table", 1, 1);
    }
    auto& embedding = std::get<AdaptiveEmbedding>(draft_.description.blocks[0]);
    embedding.name = "embedding";
    embedding.width = static_cast<uint32_t>(OutputWidth(unit_));
    embedding.scale = 1.5;
    // The first bin's table replaces the builder's.
    const TensorId table =
        Matrix("map.0", 10, options_.spells ? OutputWidth(unit_) : unit_.map_width);
    std::swap(draft_.tensors[0], draft_.tensors[table]);
    draft_.tensors.pop_back();
    if (options_.spells) {
      AddSpelling(embedding);
    } else {
      embedding.bins = {{0, 10, 0, std::nullopt},
                        {10, words - 10, Matrix("map.1", words - 10, 3),
                         Matrix("map.1.projection", unit_.map_width, 3), 0, 2}};
    }
    const uint32_t first = options_.spells ? 1 : 0;
    KeptDefineUnit& kept = embedding.units.emplace_back(
        KeptDefineUnit{first, 2 - first, unit_, {}, options_.cache_rows});
    for (size_t i = 0; i < unit_.layers.size(); ++i) {
      const std::string name = "unit." + std::to_string(i) + ".";
      const DefineShapes shapes = ShapesOf(unit_.layers[i]);
      DefineTensors tensors{};
      tensors.weight = Matrix(name + "weight", shapes.weight[0], shapes.weight[1]);
      tensors.bias = Vector(name + "bias", shapes.bias, 0);
      tensors.norm_gain = Vector(name + "norm_gain", shapes.norm_gain, 1);
      tensors.norm_offset = Vector(name + "norm_offset", shapes.norm_offset, 0);
      kept.tensors.push_back(tensors);
    }
  }

 private:
  void AddSpelling(AdaptiveEmbedding& embedding) {
    const uint32_t words = options_.vocabulary_size;
    draft_.vocabulary.clear();
    for (uint32_t id = 0; id < words; ++id) draft_.vocabulary.push_back("w" + std::to_string(id));
    draft_.vocabulary[1] = "<unk>";
    EmbeddingBin spelt{10, words - 10, Matrix("bytes", kSpellingSymbols, 4), std::nullopt, 0, 2};
    spelt.spelling.emplace().longest = 6;
    for (const auto& [width, channels] : {std::pair(1U, 5U), {3U, 7U}}) {
      const std::string name = "filter." + std::to_string(width);
      const TensorId weight = Matrix(name, channels, uint64_t{4} * width);
      spelt.spelling->filters.push_back({width, weight, *Vector(name + ".bias", {channels}, 0)});
    }
    embedding.bins = {{0, 10, 0, std::nullopt}, spelt};
  }
  TensorId Matrix(const std::string& name, uint64_t rows, uint64_t columns) {
    const float limit = std::sqrt(3.0F / static_cast<float>(columns));
    if (options_.bits == 0) return Floats(name, {rows, columns}, 0, limit);
    // The scale is a power of two, so that decoding is exact.
    return Codes(name, {rows, columns}, options_.bits,
                 [&](float) { return std::exp2(-static_cast<float>(options_.bits)); });
  }
  std::optional<TensorId> Vector(const std::string& name, const Shape& shape, float centre) {
    if (shape.empty()) return std::nullopt;
    return Floats(name, shape, centre, 0.3F);
  }

  const TinyDefineOptions options_;
  DefineUnit unit_;
};

}  // namespace

ModelDraft TinyDefine(const TinyDefineOptions& options) {
  ModelDraft draft;
  DefineModelBuilder(options, draft).Build();
  return draft;
}

}  // namespace kinglet
