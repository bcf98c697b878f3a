#include "tests/support/define_cases.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "tests/support/case_builder.h"

namespace kinglet {
namespace {

// Adds the buffers that the units' rows need and the node that makes the row.
OpCase Finished(CaseBuilder& builder, EmbedRow op, uint32_t cache_rows, double tolerance,
                uint32_t token) {
  const uint64_t width = OutputWidth(op.units[0].unit);
  op.out = builder.Floats("out", width, Fill::kRandom);
  for (DefineRows& define : op.units) {
    uint32_t words = 0;
    for (const EmbeddingBin& bin : op.BinsOf(define)) words += bin.size;
    define.cache = RowCacheShape::Of(cache_rows, words);
    define.work = builder.Floats("work", DefineWork(define.unit).total, Fill::kZero);
    define.rows = builder.Floats("rows", define.cache.rows() * width, Fill::kZero);
    define.row_index =
        builder.GivenTokens("row_index", std::vector<int32_t>(define.cache.index_size()));
  }
  return builder.Finish(op, tolerance, 0, token);
}

std::optional<TensorId> VectorOf(CaseBuilder& builder, const Shape& shape) {
  return shape.empty() ? std::nullopt : std::optional(builder.DenseVector(shape[0]));
}

struct RandomUnit {
  NamedUnit named;
  Storage storage;
  int bits;
  uint32_t token;
};

// A unit of random values, whose Map layer is the bins from `first_bin` on.
DefineRows RandomRows(CaseBuilder& builder, const RandomUnit& unit, uint32_t first_bin,
                      uint32_t bins) {
  DefineRows define{};
  define.first_bin = first_bin;
  define.bin_count = bins;
  define.unit = unit.named.unit;
  for (const DefineLayer& layer : define.unit.layers) {
    const DefineShapes shapes = ShapesOf(layer);
    define.tensors.push_back(
        {builder.Matrix(shapes.weight[0], shapes.weight[1], unit.storage, unit.bits),
         VectorOf(builder, shapes.bias), VectorOf(builder, shapes.norm_gain),
         VectorOf(builder, shapes.norm_offset)});
  }
  return define;
}

// Bins without a unit around two units of one and two bins.
OpCase MixedCase(const RandomUnit& unit) {
  const uint64_t n = unit.named.unit.map_width, width = OutputWidth(unit.named.unit);
  CaseBuilder builder(CaseName("EmbedRow.units", {unit.bits, unit.token}), unit.token + 1);
  const auto matrix = [&](uint64_t rows, uint64_t cols) {
    return builder.Matrix(rows, cols, unit.storage, unit.bits);
  };
  EmbedRow op{};
  op.scale = 0.75;
  op.bins = {{0, 3, matrix(3, width), std::nullopt},
             {3, 4, matrix(4, n), std::nullopt, 0, 2},
             {7, 2, matrix(2, 5), matrix(width, 5)},
             {9, 4, matrix(4, 7), matrix(n, 7)},
             {13, 2, matrix(2, n), std::nullopt}};
  op.units = {RandomRows(builder, unit, 1, 1), RandomRows(builder, unit, 3, 2)};
  return Finished(builder, std::move(op), 2, 1e-7, unit.token);
}

// A character CNN of random values after a bin of a table, for a word of these bytes.
OpCase SpellingCase(Storage storage, int bits, uint32_t longest, const std::string& spelling,
                    uint32_t token, uint32_t spelt) {
  CaseBuilder builder(
      CaseName("EmbedRow.spelling", {static_cast<int64_t>(storage), bits, longest,
                                     static_cast<int64_t>(spelling.size()), token, spelt}),
      static_cast<uint32_t>(spelling.size()) + longest);
  constexpr uint32_t kVector = 3, kWidth = 9;
  EmbedRow op{};
  op.scale = 0.5;
  op.bins = {
      {0, 2, builder.Matrix(2, kWidth, storage, bits), std::nullopt},
      {2, 5, builder.Matrix(kSpellingSymbols, kVector, storage, bits), std::nullopt, 0, 1.5}};
  op.bins[1].spelling.emplace().longest = longest;
  uint32_t widest = 0, features = 0;
  for (const auto& [width, channels] : {std::pair(1U, 3U), {longest, 2U}, {2U, 19U}}) {
    op.bins[1].spelling->filters.push_back(
        {width, builder.Matrix(channels, uint64_t{width} * kVector, storage, bits),
         builder.DenseVector(channels)});
    widest = std::max(widest, channels);
    features += channels;
  }
  DefineLayer highway{.in = features, .out = features};
  highway.residual = DefineLayer::Residual::kHighway;
  highway.activation = Activation::kRelu;
  const NamedUnit named{"spelling",
                        {features, 0, {highway, highway, {.in = features, .out = kWidth}}}};
  op.units = {RandomRows(builder, {named, storage, bits, token}, 1, 1)};
  op.units[0].spelling = builder.Floats(
      "spelling", uint64_t{longest} * kVector + kWindowsTogether * widest, Fill::kZero);
  OpCase made = Finished(builder, std::move(op), 2, 1e-7, token);
  // No backend leaves anything else where it kept products.
  auto& work = made.contents[static_cast<size_t>(
      *std::get<EmbedRow>(made.plan.nodes[0].op).units[0].spelling)];
  std::fill(work.floats.begin(), work.floats.end(), 0.0F);
  made.spelling = spelling;
  made.spelt = spelt;
  return made;
}

OpCase RandomCase(const std::string& prefix, const RandomUnit& unit) {
  const DefineUnit& declared = unit.named.unit;
  CaseBuilder builder(CaseName(prefix + "." + unit.named.name,
                               {static_cast<int64_t>(unit.storage), unit.bits, unit.token}),
                      unit.token + 1);
  EmbedRow op{};
  op.scale = 1.75;
  const uint64_t n = declared.map_width;
  op.bins = {{0, 5, builder.Matrix(5, n, unit.storage, unit.bits), std::nullopt, 0, 3},
             {5, 4, builder.Matrix(4, 7, unit.storage, unit.bits),
              builder.Matrix(n, 7, unit.storage, unit.bits)}};
  op.units = {RandomRows(builder, unit, 0, 2)};
  return Finished(builder, std::move(op), 2, 1e-7, unit.token);
}

}  // namespace

OpCase DefineRowCase(const NamedUnit& named, const std::vector<float>& map,
                     std::span<const LayerValues> layers, uint32_t cache_rows, uint32_t token) {
  CaseBuilder builder(named.name, 1);
  const auto add = [&builder](const Shape& shape,
                              const std::vector<float>& values) -> std::optional<TensorId> {
    if (shape.empty()) return std::nullopt;
    return builder.Tensor({"unit", shape, DenseF32{values}, false});
  };
  const uint64_t words = map.size() / named.unit.map_width;
  EmbedRow op{};
  op.scale = 1;
  op.bins = {{0, static_cast<uint32_t>(words), *add({words, named.unit.map_width}, map),
              std::nullopt, 0, named.map_scale}};
  DefineRows define{};
  define.bin_count = 1;
  define.unit = named.unit;
  for (size_t i = 0; i < layers.size(); ++i) {
    const DefineShapes shapes = ShapesOf(named.unit.layers[i]);
    define.tensors.push_back({*add(shapes.weight, layers[i].weight),
                              add(shapes.bias, layers[i].bias),
                              add(shapes.norm_gain, layers[i].norm_gain),
                              add(shapes.norm_offset, layers[i].norm_offset)});
  }
  op.units.push_back(std::move(define));
  return Finished(builder, std::move(op), cache_rows, kNotComparable, token);
}

void AddDefineEdges(std::vector<OpCase>& cases) {
  for (const NamedUnit& named : DefineUnits()) {
    for (const uint32_t token : {0U, 8U}) {
      cases.push_back(RandomCase("EmbedRow.define", {named, Storage::kF32, 0, token}));
      cases.push_back(RandomCase("EmbedRow.define", {named, Storage::kPerRow, 9, token}));
    }
  }
  for (const uint32_t token : {1U, 4U, 8U, 10U, 14U}) {
    cases.push_back(MixedCase({DefineUnits()[4], Storage::kF32, 0, token}));
    cases.push_back(MixedCase({DefineUnits()[4], Storage::kPerRow, 9, token}));
  }
  for (const auto& [storage, bits] : {std::pair(Storage::kF32, 0), {Storage::kPerRow, 9}}) {
    for (const size_t length : {0, 1, 2, 7, 8, 9, 10, 11, 30}) {
      std::string word(length, 'a');
      for (size_t i = 0; i < length; ++i) word[i] = static_cast<char>(i * 37 + 200);
      cases.push_back(SpellingCase(storage, bits, 10, word, 4, 0));
      cases.push_back(SpellingCase(storage, bits, 2, word, 1, 1000));
    }
    cases.push_back(SpellingCase(storage, bits, 10, "", 1, 0));  // a word of the table
  }
  const NamedUnit none{"none", {kDefineMapWidth, 0, {}}};
  cases.push_back(RandomCase("EmbedRow.define", {none, Storage::kF16, 0, 6}));
}

void AddRealisticDefineCases(std::vector<OpCase>& cases) {
  NamedUnit named{"define", {512, 0, {}}};
  uint64_t previous = 512;
  for (uint64_t i = 0; i < 11; ++i) {
    DefineLayer layer;
    layer.groups = std::max<uint64_t>(16 >> i, 1);
    layer.out = 512 + (i + 1) * 512 / 11 / 16 * 16;
    layer.skip = i > 0 ? DefineLayer::Skip::kMix : DefineLayer::Skip::kNone;
    layer.in = InputWidth(layer, 512, previous);
    layer.activation = DefineLayer::Activation::kGelu;
    previous = layer.out;
    named.unit.layers.push_back(layer);
  }
  named.unit.layers.push_back({.in = previous, .out = 512});
  cases.push_back(RandomCase("embedding", {named, Storage::kF32, 0, 3}));
}

}  // namespace kinglet
