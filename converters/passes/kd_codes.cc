#include "converters/passes/kd_codes.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "converters/checkpoints/entries.h"

namespace kinglet {
namespace {

constexpr char kKdCodes[] = "kd codes";

Status CheckLinear(const KdTraining& training) {
  KINGLET_RETURN_IF_ERROR(CheckCount(kKdCodes, "width", training.width));
  KINGLET_RETURN_IF_ERROR(
      CheckArray(kKdCodes, "kernel", {training.length, training.width}, training.kernel));
  const auto optional = [](const char* name, std::span<const float> entries,
                           uint64_t length) -> Status {
    if (entries.empty()) return {};
    return CheckArray(kKdCodes, name, {length}, entries);
  };
  KINGLET_RETURN_IF_ERROR(optional("bias", training.bias, training.width));
  KINGLET_RETURN_IF_ERROR(optional("batch norm gain", training.gain, training.length));
  KINGLET_RETURN_IF_ERROR(optional("batch norm offset", training.offset, training.length));
  const bool normalised = !training.mean.empty() || !training.variance.empty() ||
                          !training.gain.empty() || !training.offset.empty();
  if (!normalised) return {};
  KINGLET_RETURN_IF_ERROR(
      CheckArray(kKdCodes, "batch norm mean", {training.length}, training.mean));
  KINGLET_RETURN_IF_ERROR(
      CheckArray(kKdCodes, "batch norm variance", {training.length}, training.variance));
  return CheckVariances(kKdCodes, training.variance, training.epsilon);
}

Status CheckKdTraining(const KdTraining& training) {
  KINGLET_RETURN_IF_ERROR(CheckCount(kKdCodes, "words", training.words));
  KINGLET_RETURN_IF_ERROR(CheckCount(kKdCodes, "positions", training.positions));
  KINGLET_RETURN_IF_ERROR(CheckCount(kKdCodes, "choices", training.choices));
  KINGLET_RETURN_IF_ERROR(CheckCount(kKdCodes, "length", training.length));
  KINGLET_RETURN_IF_ERROR(
      CheckEntries(kKdCodes, "codes", {training.words, training.positions}, training.codes.size()));
  const auto wrong = std::find_if(training.codes.begin(), training.codes.end(),
                                  [&](uint32_t code) { return code >= training.choices; });
  if (wrong != training.codes.end()) {
    return Status::Refusal(KINGLET_INVALID_CHECKPOINT, kKdCodes,
                           "code " + std::to_string(wrong - training.codes.begin()),
                           "below " + std::to_string(training.choices), std::to_string(*wrong));
  }
  const uint64_t subspaces = training.shared ? 1 : training.positions;
  return CheckArray(kKdCodes, "code embeddings", {subspaces, training.choices, training.length},
                    training.embeddings);
}

// Batch norm as a * x + c.
struct Affine {
  std::vector<double> a, c;
};
Affine BatchNormOf(const KdTraining& training) {
  Affine affine{std::vector<double>(training.length, 1), std::vector<double>(training.length, 0)};
  for (uint64_t i = 0; i < training.mean.size(); ++i) {
    const double gain = training.gain.empty() ? 1.0 : training.gain[i];
    affine.a[i] = gain / std::sqrt(training.variance[i] + training.epsilon);
    affine.c[i] =
        (training.offset.empty() ? 0.0 : training.offset[i]) - affine.a[i] * training.mean[i];
  }
  return affine;
}

// Appends a constant 1 to each code vector, and `constant` to the projection as its last column.
void AddConstant(const std::vector<double>& constant, KdTable& embedding) {
  const uint64_t length = embedding.table.length;
  const auto widened = [length](const std::vector<float>& rows, auto last) {
    std::vector<float> wide;
    wide.reserve(rows.size() + rows.size() / length);
    for (size_t row = 0; row < rows.size() / length; ++row) {
      const auto first = rows.begin() + static_cast<std::ptrdiff_t>(row * length);
      wide.insert(wide.end(), first, first + static_cast<std::ptrdiff_t>(length));
      wide.push_back(last(row));
    }
    return wide;
  };
  embedding.table.codebook = widened(embedding.table.codebook, [](size_t) { return 1.0F; });
  embedding.projection = widened(
      embedding.projection, [&constant](size_t row) { return static_cast<float>(constant[row]); });
  ++embedding.table.length;
}

}  // namespace

Result<std::vector<uint32_t>> CodesFromLogits(std::span<const float> logits, uint64_t choices) {
  KINGLET_RETURN_IF_ERROR(CheckCount(kKdCodes, "choices", choices));
  if (logits.size() % choices != 0) {
    return Status::Refusal(KINGLET_INVALID_CHECKPOINT, kKdCodes, "logits",
                           "a multiple of " + std::to_string(choices) + " entries",
                           std::to_string(logits.size()));
  }
  KINGLET_RETURN_IF_ERROR(CheckFinite(kKdCodes, "logits", logits));
  std::vector<uint32_t> codes;
  codes.reserve(logits.size() / choices);
  for (size_t first = 0; first < logits.size(); first += choices) {
    const std::span<const float> one = logits.subspan(first, choices);
    codes.push_back(static_cast<uint32_t>(std::max_element(one.begin(), one.end()) - one.begin()));
  }
  return codes;
}

Result<KdTable> KdEmbedding(KdTraining training) {
  KINGLET_RETURN_IF_ERROR(CheckKdTraining(training));
  KdTable embedding;
  CodedTable& table = embedding.table;
  table.combine = Combine::kMean;
  table.rows = training.words;
  table.positions = training.positions;
  table.length = training.length;
  table.pools.assign(training.shared ? 1 : training.positions,
                     static_cast<uint32_t>(training.choices));
  table.codebook.assign(training.embeddings.begin(), training.embeddings.end());
  table.codes = std::move(training.codes);
  if (training.aggregator == KdAggregator::kMean) return embedding;

  KINGLET_RETURN_IF_ERROR(CheckLinear(training));
  const Affine norm = BatchNormOf(training);
  embedding.projection.resize(training.width * training.length);
  std::vector<double> constant(training.width);
  for (uint64_t out = 0; out < training.width; ++out) {
    constant[out] = training.bias.empty() ? 0.0 : training.bias[out];
    for (uint64_t in = 0; in < training.length; ++in) {
      const double weight = training.kernel[in * training.width + out];
      embedding.projection[out * training.length + in] = static_cast<float>(weight * norm.a[in]);
      constant[out] += weight * norm.c[in];
    }
  }
  if (std::any_of(constant.begin(), constant.end(), [](double x) { return x != 0; })) {
    AddConstant(constant, embedding);
  }
  KINGLET_RETURN_IF_ERROR(CheckFinite(kKdCodes, "batch norm and kernel", embedding.projection));
  return embedding;
}

CodedTable WithoutProjection(KdTable embedding) {
  CodedTable table = std::move(embedding.table);
  if (embedding.projection.empty()) return table;
  const uint64_t length = table.length, width = embedding.projection.size() / length;
  std::vector<float> codebook;
  codebook.reserve(table.codebook.size() / length * width);
  for (size_t row = 0; row < table.codebook.size(); row += length) {
    for (uint64_t out = 0; out < width; ++out) {
      double sum = 0;
      for (uint64_t in = 0; in < length; ++in) {
        sum +=
            static_cast<double>(embedding.projection[out * length + in]) * table.codebook[row + in];
      }
      codebook.push_back(static_cast<float>(sum));
    }
  }
  table.codebook = std::move(codebook);
  table.length = width;
  return table;
}

}  // namespace kinglet
