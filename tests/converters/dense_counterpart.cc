#include "tests/converters/dense_counterpart.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <variant>

#include "format/coded_rows.h"
#include "format/model_file.h"
#include "format/overloaded.h"
#include "format/writer.h"

namespace kinglet {
namespace {

// Rows in double precision, [words, columns].
struct ExactRows {
  uint64_t words = 0, columns = 0;
  std::vector<double> values;
};

// The rows of a coded table by its equation.
ExactRows DecodedRows(const ModelFile& file, const TensorView& view) {
  const CodingScheme& scheme = view.coded()->scheme;
  const std::vector<float> book = DecodedValues(file.tensors()[scheme.codebook]);
  ExactRows decoded{view.shape[0], view.shape[1], {}};
  const uint64_t length = SubVectorLength(scheme, decoded.columns);
  const CodedRows codes(view);
  std::vector<uint32_t> rows(codes.positions());
  for (uint64_t word = 0; word < decoded.words; ++word) {
    codes.CodebookRows(word, rows.data());
    std::vector<double> row(decoded.columns, 0);
    for (size_t j = 0; j < rows.size(); ++j) {
      const size_t at = scheme.combine == Combine::kConcatenate ? j * length : 0;
      for (uint64_t i = 0; i < length; ++i) row[at + i] += double{book[rows[j] * length + i]};
    }
    const double count = scheme.combine == Combine::kMean ? static_cast<double>(rows.size()) : 1;
    for (const double entry : row) decoded.values.push_back(entry / count);
  }
  return decoded;
}

DenseF32 Rounded(const ExactRows& rows) {
  return DenseF32{{rows.values.begin(), rows.values.end()}};
}

EncodedTensor Decoded(const ModelFile& file, const TensorView& view) {
  EncodedTensor tensor;
  tensor.name = view.name;
  tensor.shape = view.shape;
  tensor.derived = view.derived;
  tensor.pruned = view.mask.has_value();
  std::visit(
      Overloaded{[&](const DenseView&) { tensor.values = DenseF32{DecodedValues(view)}; },
                 [&](const PackedView&) {
                   const DecodedCodes codes = DecodeCodes(view);
                   tensor.values = Quantised{codes.bits, codes.rule, codes.codes, codes.scales};
                 },
                 [&](const CodedView&) { tensor.values = Rounded(DecodedRows(file, view)); }},
      view.values);
  return tensor;
}

// One layer of a unit, as the grid's units have them: a matrix for each group, the mixer, ReLU or
// GELU (Mehta et al. 2020, section 3.2).
std::vector<double> LayerOf(const DefineLayer& layer, std::span<const float> weight,
                            std::span<const float> bias, const std::vector<double>& e,
                            const std::vector<double>& previous) {
  EXPECT_TRUE(layer.weights == DefineLayer::Weights::kPerGroup &&
              layer.norm == DefineLayer::Norm::kNone &&
              layer.order == DefineLayer::Order::kInputFirst);
  const bool mixed = layer.skip == DefineLayer::Skip::kMix;
  std::vector<double> result;
  const uint64_t inputs = layer.in / layer.groups, outputs = layer.out / layer.groups;
  for (uint64_t g = 0; g < layer.groups; ++g) {
    std::vector<double> x;
    for (const std::vector<double>* part : {&e, &previous}) {
      if (part == &e && !mixed) continue;
      const uint64_t chunk = part->size() / layer.groups;
      for (uint64_t i = 0; i < chunk; ++i) x.push_back((*part)[g * chunk + i]);
    }
    for (uint64_t o = 0; o < outputs; ++o) {
      const uint64_t row = g * outputs + o;
      double sum = bias.empty() ? 0 : double{bias[row]};
      for (uint64_t i = 0; i < inputs; ++i) sum += double{weight[row * inputs + i]} * x[i];
      if (layer.activation == DefineLayer::Activation::kRelu) sum = std::max(sum, 0.0);
      if (layer.activation == DefineLayer::Activation::kGelu) {
        sum *= (1 + std::erf(sum / std::sqrt(2.0))) / 2;
      }
      result.push_back(sum);
    }
  }
  return result;
}

// The vectors of all words: rows, or the outputs of a kept unit. `tables`: the rows of each bin.
ExactRows VectorsOf(const AdaptiveEmbedding& embedding, const ModelDraft& draft,
                    const std::vector<ExactRows>& tables) {
  ExactRows all{0, embedding.width, {}};
  const auto values = [&](std::optional<TensorId> id) {
    return id ? DecodedValues(draft.tensors[*id]) : std::vector<float>();
  };
  for (size_t b = 0; b < tables.size(); ++b) {
    const std::vector<float> projection = values(embedding.bins[b].projection);
    for (uint64_t word = 0; word < tables[b].words; ++word) {
      const uint64_t columns = tables[b].columns;
      const std::span<const double> row(&tables[b].values[word * columns], columns);
      std::vector<double> x(row.begin(), row.end());
      if (!projection.empty()) {
        x.assign(projection.size() / columns, 0);
        for (size_t i = 0; i < projection.size(); ++i) {
          x[i / columns] += double{projection[i]} * row[i % columns];
        }
      }
      for (double& entry : x) entry *= embedding.bins[b].scale;
      const std::vector<double> e = x;
      const KeptDefineUnit* const unit = UnitOf(embedding.units, b);
      for (size_t l = 0; unit != nullptr && l < unit->tensors.size(); ++l) {
        const DefineTensors& layer = unit->tensors[l];
        x = LayerOf(unit->unit.layers[l], values(layer.weight), values(layer.bias), e, x);
      }
      all.values.insert(all.values.end(), x.begin(), x.end());
      ++all.words;
    }
  }
  return all;
}

// An embedding whose rows are exact: each is two float32 numbers, [near, rest], that a projection
// [I, I] adds.
void MakeDense(const ModelFile& file, AdaptiveEmbedding& embedding, ModelDraft& draft) {
  std::vector<ExactRows> tables;
  for (const EmbeddingBin& bin : embedding.bins) {
    const TensorView& view = file.tensors()[bin.table];
    if (view.coded() != nullptr) {
      tables.push_back(DecodedRows(file, view));
    } else {
      const std::vector<float> values = DecodedValues(view);
      tables.push_back({view.shape[0], view.shape[1], {values.begin(), values.end()}});
    }
  }
  const ExactRows rows = VectorsOf(embedding, draft, tables);
  const uint64_t width = rows.columns;
  DenseF32 table, projection;
  for (size_t at = 0; at < rows.values.size(); at += width) {
    for (const bool rest : {false, true}) {
      for (size_t i = at; i < at + width; ++i) {
        const auto near = static_cast<float>(rows.values[i]);
        table.values.push_back(rest ? static_cast<float>(rows.values[i] - double{near}) : near);
      }
    }
  }
  for (uint64_t row = 0; row < width; ++row) {
    for (uint64_t i = 0; i < 2 * width; ++i) projection.values.push_back(i % width == row ? 1 : 0);
  }
  const auto id = static_cast<TensorId>(draft.tensors.size());
  draft.tensors.push_back({embedding.name + " decoded", {rows.words, 2 * width}, table, false});
  draft.tensors.push_back({embedding.name + " sums", {width, 2 * width}, projection, false});
  embedding.bins = {{0, static_cast<uint32_t>(rows.words), id, id + 1}};
  embedding.units.clear();
}

}  // namespace

std::vector<std::byte> DenseCounterpart(const std::string& path) {
  const auto file = *ModelFile::Open(path);
  ModelDraft draft;
  draft.description = file->description();
  for (const TensorView& view : file->tensors()) draft.tensors.push_back(Decoded(*file, view));
  for (Block& block : draft.description.blocks) {
    if (auto* embedding = std::get_if<AdaptiveEmbedding>(&block)) {
      MakeDense(*file, *embedding, draft);
    }
    if (auto* encoder = std::get_if<TransformerEncoder>(&block)) {
      MakeDense(*file, encoder->embedding, draft);
    }
    if (auto* encoder = std::get_if<RecurrentEncoder>(&block)) {
      MakeDense(*file, encoder->embedding, draft);
    }
  }
  auto bytes = SerialiseModel(draft);
  EXPECT_TRUE(bytes.ok()) << bytes.status().message();
  return bytes.ok() ? *std::move(bytes) : std::vector<std::byte>();
}

}  // namespace kinglet
