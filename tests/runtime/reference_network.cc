#include "tests/runtime/reference_network.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace kinglet {
namespace {

using Vector = std::vector<double>;

Vector Tensor(const ModelDraft& draft, TensorId id) {
  const std::vector<float> values = DecodedValues(draft.tensors[id]);
  return Vector(values.begin(), values.end());
}

Vector Multiply(const Vector& matrix, const Vector& x, const Vector& bias = {}) {
  Vector y(matrix.size() / x.size());
  for (size_t row = 0; row < y.size(); ++row) {
    for (size_t i = 0; i < x.size(); ++i) y[row] += matrix[row * x.size() + i] * x[i];
    if (!bias.empty()) y[row] += bias[row];
  }
  return y;
}

Vector Normalise(const Vector& x, const Vector& gain, const Vector& bias) {
  double mean = 0, variance = 0;
  for (double value : x) mean += value / static_cast<double>(x.size());
  for (double value : x)
    variance += (value - mean) * (value - mean) / static_cast<double>(x.size());
  Vector y(x.size());
  for (size_t i = 0; i < x.size(); ++i)
    y[i] = (x[i] - mean) / std::sqrt(variance + 1e-5) * gain[i] + bias[i];
  return y;
}

void Round(Vector& x, const std::optional<ActivationQuantiser>& quantiser) {
  if (!quantiser) return;
  for (double& value : x) {
    const double clamped =
        std::clamp<double>(value, -static_cast<double>(quantiser->max_abs), quantiser->max_abs);
    value = std::nearbyint(clamped / static_cast<double>(quantiser->step)) *
            static_cast<double>(quantiser->step);
  }
}

Vector LogSoftmax(const Vector& logits) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (double x : logits) sum += std::exp(x - largest);
  Vector y(logits.size());
  for (size_t i = 0; i < y.size(); ++i) y[i] = logits[i] - largest - std::log(sum);
  return y;
}

struct Evaluation {
  const ModelDraft& draft;
  const TransformerDecoder& decoder;

  Vector Get(TensorId id) const { return Tensor(draft, id); }

  Vector Embed(const AdaptiveEmbedding& embedding, uint32_t id) const {
    for (const EmbeddingBin& bin : embedding.bins) {
      if (id < bin.first || id >= bin.first + bin.size) continue;
      const Vector table = Get(bin.table);
      const size_t cols = table.size() / bin.size;
      Vector row(table.begin() + static_cast<std::ptrdiff_t>((id - bin.first) * cols),
                 table.begin() + static_cast<std::ptrdiff_t>((id - bin.first + 1) * cols));
      if (bin.projection) row = Multiply(Get(*bin.projection), row);
      for (double& value : row) value *= embedding.scale;
      return row;
    }
    return {};
  }

  // One layer over the whole sequence x[t].
  void Layer(const TransformerLayer& layer, std::vector<Vector>& x) const {
    const auto quantisers = layer.quantisers;
    const auto at = [&](auto member) {
      return quantisers ? std::optional<ActivationQuantiser>((*quantisers).*member) : std::nullopt;
    };
    using Q = TransformerLayerQuantisers;
    const size_t dk = decoder.key_size, dv = decoder.value_size, window = decoder.window;
    const Vector positions = Get(*layer.positions);
    std::vector<Vector> qkv(x.size());
    for (size_t t = 0; t < x.size(); ++t) {
      Vector u = Normalise(x[t], Get(layer.attention_norm_gain), Get(layer.attention_norm_bias));
      Round(u, at(&Q::attention_input));
      qkv[t] = Multiply(Get(layer.qkv_weight), u, Get(*layer.qkv_bias));
      Round(qkv[t], at(&Q::qkv));
    }
    for (size_t t = 0; t < x.size(); ++t) {
      Vector attended;
      for (size_t head = 0; head < decoder.heads; ++head) {
        const size_t base = head * (2 * dk + dv);
        Vector scores;
        std::vector<std::ptrdiff_t> sources;
        for (size_t distance = window; distance-- > 0;) {
          const auto source =
              static_cast<std::ptrdiff_t>(t) - static_cast<std::ptrdiff_t>(distance);
          if (source < 0 && decoder.start == StreamStart::kMasked) continue;
          double score = 0;
          for (size_t i = 0; i < dk; ++i) {
            const double q = qkv[t][base + i];
            const double k = source < 0 ? 0 : qkv[static_cast<size_t>(source)][base + dk + i];
            score += q * k + q * positions[i * window + (window - 1 - distance)];
          }
          scores.push_back(score / std::sqrt(static_cast<double>(dk)));
          sources.push_back(source);
        }
        Vector weights = LogSoftmax(scores);
        for (double& weight : weights) weight = std::exp(weight);
        Round(weights, at(&Q::weights));
        for (size_t c = 0; c < dv; ++c) {
          double sum = 0;
          for (size_t i = 0; i < weights.size(); ++i) {
            if (sources[i] >= 0)
              sum += weights[i] * qkv[static_cast<size_t>(sources[i])][base + 2 * dk + c];
          }
          attended.push_back(sum);
        }
      }
      Round(attended, at(&Q::attended));
      const Vector out = Multiply(Get(layer.out_weight), attended);
      for (size_t i = 0; i < out.size(); ++i) x[t][i] += out[i];
      Vector u = Normalise(x[t], Get(layer.inner_norm_gain), Get(layer.inner_norm_bias));
      Round(u, at(&Q::inner_input));
      Vector inner = Multiply(Get(layer.inner_weight), u, Get(layer.inner_bias));
      for (double& value : inner) value = std::max(value, 0.0);
      Round(inner, at(&Q::inner));
      Vector outer = Multiply(Get(layer.outer_weight), inner, Get(layer.outer_bias));
      Round(outer, at(&Q::outer));
      for (size_t i = 0; i < outer.size(); ++i) x[t][i] += outer[i];
    }
  }

  Vector Project(const std::optional<TensorId>& projection, const Vector& hidden) const {
    return projection ? Multiply(Get(*projection), hidden) : hidden;
  }
  Vector Logits(const std::optional<TensorId>& rows, const std::optional<TensorId>& bias,
                const Vector& x) const {
    if (!rows) return {};
    return Multiply(Get(*rows), x, bias ? Get(*bias) : Vector{});
  }

  Vector Softmax(const AdaptiveSoftmax& softmax, const Vector& hidden) const {
    const Vector x = Project(softmax.head_projection, hidden);
    Vector logits = Logits(softmax.head_table, softmax.head_bias, x);
    const Vector clusters = Logits(softmax.cluster_weight, softmax.cluster_bias, x);
    const auto tail_logits = [&](const SoftmaxTail& tail) {
      return Logits(tail.table, tail.bias, Project(tail.projection, hidden));
    };
    if (softmax.normalisation == Normalisation::kWhole) {
      for (const SoftmaxTail& tail : softmax.tails) {
        for (double value : tail_logits(tail)) logits.push_back(value + clusters[tail.cluster_row]);
      }
      return LogSoftmax(logits);
    }
    logits.insert(logits.end(), clusters.begin(), clusters.end());
    const Vector head = LogSoftmax(logits);
    Vector all(head.begin(), head.begin() + softmax.head_size);
    for (const SoftmaxTail& tail : softmax.tails) {
      for (double value : LogSoftmax(tail_logits(tail))) {
        all.push_back(head[softmax.head_size + tail.cluster_row] + value);
      }
    }
    return all;
  }
};

}  // namespace

std::vector<std::vector<double>> EvaluateDensely(const ModelDraft& draft,
                                                 const std::vector<uint32_t>& ids,
                                                 bool normalised) {
  const Evaluation evaluation{draft, *FindBlock<TransformerDecoder>(draft.description)};
  const auto* cache = FindBlock<NeuralCache>(draft.description);
  std::vector<Vector> x;
  for (uint32_t id : ids)
    x.push_back(evaluation.Embed(*FindBlock<AdaptiveEmbedding>(draft.description), id));
  for (const TransformerLayer& layer : evaluation.decoder.layers) evaluation.Layer(layer, x);
  for (Vector& hidden : x) Round(hidden, evaluation.decoder.output);
  std::vector<Vector> result;
  for (size_t t = 0; t < ids.size(); ++t) {
    Vector p = evaluation.Softmax(*FindBlock<AdaptiveSoftmax>(draft.description), x[t]);
    if (cache != nullptr) {
      const size_t stored = std::min<size_t>(t, cache->capacity);
      Vector scores, share(p.size());
      for (size_t i = t - stored; i < t; ++i) {
        double dot = 0;
        for (size_t j = 0; j < x[t].size(); ++j) dot += x[t][j] * x[i][j];
        scores.push_back(cache->theta * dot);
      }
      if (stored > 0) {
        const Vector weights = LogSoftmax(scores);
        for (size_t i = 0; i < stored; ++i) share[ids[t - stored + i + 1]] += std::exp(weights[i]);
      }
      const double lambda = stored == 0 && normalised ? 0 : cache->lambda;
      for (size_t w = 0; w < p.size(); ++w)
        p[w] = std::log((1 - lambda) * std::exp(p[w]) + lambda * share[w]);
    }
    result.push_back(p);
  }
  return result;
}

}  // namespace kinglet
