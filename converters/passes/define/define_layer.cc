#include "converters/passes/define/define_layer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "kernels/functions.h"
#include "kernels/portable_functions.h"

namespace kinglet {
namespace {

void CopyFeatures(const FeatureBatch& from, uint64_t first, uint64_t count, FeatureBatch& to,
                  uint64_t to_first) {
  std::copy_n(from.Feature(first), count * kBatchWords, to.Feature(to_first));
}

// Chunk j of `first` followed by chunk j of `second`, for each of `chunks`.
void Interleave(const FeatureBatch& first, uint64_t first_width, const FeatureBatch& second,
                uint64_t second_width, uint64_t chunks, FeatureBatch& joined) {
  const uint64_t a = first_width / chunks, b = second_width / chunks;
  for (uint64_t chunk = 0; chunk < chunks; ++chunk) {
    CopyFeatures(first, chunk * a, a, joined, chunk * (a + b));
    CopyFeatures(second, chunk * b, b, joined, chunk * (a + b) + a);
  }
}

void AddBias(const DefineLayer& layer, std::span<const float> bias, FeatureBatch& batch) {
  if (bias.empty()) return;
  for (uint64_t feature = 0; feature < layer.products(); ++feature) {
    const double value = bias[feature % bias.size()];
    double* words = batch.Feature(feature);
    for (size_t word = 0; word < kBatchWords; ++word) words[word] += value;
  }
}

void ShuffleFeatures(const DefineLayer& layer, const FeatureBatch& from, FeatureBatch& to) {
  const uint64_t width = layer.out / layer.groups;
  for (uint64_t group = 0; group < layer.groups; ++group) {
    for (uint64_t j = 0; j < width; ++j) {
      CopyFeatures(from, group * width + j, 1, to, j * layer.groups + group);
    }
  }
}

// Layer normalisation of `width` adjacent features.
void NormaliseFeatures(const DefineLayer& layer, const DefineWeights& weights, uint64_t width,
                       double* features) {
  using Words = std::array<double, kBatchWords>;
  Words mean = {}, variance = {};
  for (uint64_t f = 0; f < width; ++f) {
    for (size_t word = 0; word < kBatchWords; ++word) {
      mean[word] += features[f * kBatchWords + word];
    }
  }
  for (double& value : mean) value /= static_cast<double>(width);
  for (uint64_t f = 0; f < width; ++f) {
    for (size_t word = 0; word < kBatchWords; ++word) {
      const double centred = features[f * kBatchWords + word] - mean[word];
      variance[word] += centred * centred;
    }
  }
  Words deviation;
  for (size_t word = 0; word < kBatchWords; ++word) {
    deviation[word] = std::sqrt(variance[word] / static_cast<double>(width) + layer.norm_epsilon);
  }
  for (uint64_t f = 0; f < width; ++f) {
    const double gain = weights.norm_gain.empty() ? 1.0 : weights.norm_gain[f];
    const double offset = weights.norm_offset.empty() ? 0.0 : weights.norm_offset[f];
    double* words = features + f * kBatchWords;
    for (size_t word = 0; word < kBatchWords; ++word) {
      words[word] = (words[word] - mean[word]) / deviation[word] * gain + offset;
    }
  }
}

void NormaliseLayer(const DefineLayer& layer, const DefineWeights& weights, FeatureBatch& batch) {
  if (layer.norm == DefineLayer::Norm::kNone) return;
  const uint64_t parts = layer.norm == DefineLayer::Norm::kPerGroup ? layer.groups : 1;
  const uint64_t width = layer.out / parts;
  for (uint64_t part = 0; part < parts; ++part) {
    NormaliseFeatures(layer, weights, width, batch.Feature(part * width));
  }
}

void Activate(DefineLayer::Activation activation, std::span<double> values) {
  const auto apply = [values](auto function) {
    std::transform(values.begin(), values.end(), values.begin(), function);
  };
  switch (activation) {
    case DefineLayer::Activation::kNone:
      return;
    case DefineLayer::Activation::kRelu:
      return apply([](double x) { return std::max(x, 0.0); });
    case DefineLayer::Activation::kGelu:
      return apply([](double x) { return x * 0.5 * portable::Erfc(-x / std::numbers::sqrt2); });
    case DefineLayer::Activation::kSwish:
      return apply([](double x) { return x * portable::Sigmoid(x); });
    case DefineLayer::Activation::kTanh:
      return apply([](double x) { return portable::Tanh(x); });
    case DefineLayer::Activation::kSigmoid:
      return apply(portable::Sigmoid);
    case DefineLayer::Activation::kLeakyRelu:
      return apply([](double x) { return x < 0 ? kLeakySlope * x : x; });
    case DefineLayer::Activation::kDoubleSwish:
      return apply([](double x) { return x * portable::Sigmoid(x - 1); });
    case DefineLayer::Activation::kTanhGelu:
      return apply([](double x) {
        using C = TanhGeluConstants<double>;
        return x * portable::Sigmoid(x * (C::kFirst + C::kThird * (x * x)));
      });
  }
}

void PassHighway(const DefineLayer& layer, const FeatureBatch& previous, FeatureBatch& product,
                 FeatureBatch& output) {
  const size_t count = layer.out * kBatchWords;
  Activate(layer.activation, {product.Feature(0), count});
  Activate(Activation::kSigmoid, {product.Feature(layer.out), count});
  for (size_t i = 0; i < count; ++i) {
    const double gate = product.Feature(layer.out)[i];
    output.Feature(0)[i] = gate * previous.Feature(0)[i] + (1 - gate) * product.Feature(0)[i];
  }
}

void AddFeatures(const FeatureBatch& from, uint64_t features, FeatureBatch& to) {
  const double* addends = from.Feature(0);
  std::transform(addends, addends + features * kBatchWords, to.Feature(0), to.Feature(0),
                 [](double a, double b) { return a + b; });
}

}  // namespace

void ApplyLayer(const DefineLayer& layer, const DefineWeights& weights, const FeatureBatch& e,
                uint64_t e_width, const FeatureBatch& previous, uint64_t previous_width,
                FeatureBatch& joined, FeatureBatch& unshuffled, FeatureBatch& output) {
  if (layer.skip != DefineLayer::Skip::kNone) {
    const uint64_t chunks = layer.skip == DefineLayer::Skip::kMix ? layer.groups : 1;
    if (layer.order == DefineLayer::Order::kInputFirst) {
      Interleave(e, e_width, previous, previous_width, chunks, joined);
    } else {
      Interleave(previous, previous_width, e, e_width, chunks, joined);
    }
  }
  const FeatureBatch& input = layer.skip == DefineLayer::Skip::kNone ? previous : joined;
  const bool shuffles = layer.shuffle != DefineLayer::Shuffle::kNone;

  const bool is_highway = layer.residual == DefineLayer::Residual::kHighway;
  FeatureBatch& product = shuffles || is_highway ? unshuffled : output;
  const uint64_t in = layer.in / layer.groups, out = layer.products() / layer.groups;
  for (uint64_t group = 0; group < layer.groups; ++group) {
    const uint64_t matrix = layer.weights == DefineLayer::Weights::kPerGroup ? group : 0;
    MultiplyBatch(weights.weight.data() + matrix * in * out, out, in, input.Feature(group * in),
                  product.Feature(group * out));
  }
  AddBias(layer, weights.bias, product);
  if (is_highway) return PassHighway(layer, previous, product, output);
  if (layer.shuffle == DefineLayer::Shuffle::kBeforeNorm) {
    ShuffleFeatures(layer, product, output);
    NormaliseLayer(layer, weights, output);
  } else {
    NormaliseLayer(layer, weights, product);
    if (shuffles) ShuffleFeatures(layer, product, output);
  }

  if (layer.residual == DefineLayer::Residual::kBeforeActivation) {
    AddFeatures(previous, layer.out, output);
  }
  Activate(layer.activation, {output.Feature(0), layer.out * kBatchWords});
  if (layer.residual == DefineLayer::Residual::kAfterActivation) {
    AddFeatures(previous, layer.out, output);
  }
}

}  // namespace kinglet
