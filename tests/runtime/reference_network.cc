#include "tests/runtime/reference_network.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <variant>

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

Vector Normalise(const Vector& x, const Vector& gain, const Vector& bias, double epsilon) {
  double mean = 0, variance = 0;
  for (double value : x) mean += value / static_cast<double>(x.size());
  for (double value : x)
    variance += (value - mean) * (value - mean) / static_cast<double>(x.size());
  Vector y(x.size());
  for (size_t i = 0; i < x.size(); ++i)
    y[i] = (x[i] - mean) / std::sqrt(variance + epsilon) * gain[i] + bias[i];
  return y;
}

void Round(Vector& x, const std::optional<ActivationQuantiser>& quantiser) {
  if (!quantiser) return;
  for (double& value : x) {
    const double clamped =
        std::clamp<double>(value, -static_cast<double>(quantiser->max_abs), quantiser->max_abs);
    value = std::nearbyint(clamped / static_cast<double>(quantiser->scale)) *
            static_cast<double>(quantiser->scale);
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

  Vector GetAny(const std::optional<TensorId>& id) const { return id ? Get(*id) : Vector{}; }
  Vector Norm(const Vector& x, TensorId gain, TensorId bias) const {
    return Normalise(x, Get(gain), Get(bias), decoder.epsilon);
  }

  // The position of a token where positions are absolute, and whether a token that many positions
  // earlier belongs to the same run of positions.
  size_t Place(size_t t) const { return t % decoder.window; }
  bool SameRun(size_t t, size_t distance) const {
    return !IsAbsolute(decoder.positions) || distance <= Place(t);
  }

  void AddPositions(std::vector<Vector>& x) const {
    for (size_t t = 0; t < x.size(); ++t) {
      if (const auto* table = std::get_if<PositionTable>(&decoder.positions)) {
        const Vector rows = Get(table->table);
        for (size_t i = 0; i < x[t].size(); ++i) x[t][i] += rows[Place(t) * x[t].size() + i];
      } else if (const auto* sinusoids = std::get_if<AbsoluteSinusoids>(&decoder.positions)) {
        const Vector frequencies = Get(sinusoids->frequencies);
        const size_t half = frequencies.size();
        for (size_t i = 0; i < half; ++i) {
          const auto angle =
              static_cast<float>(static_cast<double>(sinusoids->first + Place(t)) * frequencies[i]);
          x[t][i] += static_cast<float>(std::sin(static_cast<double>(angle)));
          x[t][half + i] += static_cast<float>(std::cos(static_cast<double>(angle)));
        }
      }
    }
  }

  // r[distance]: the layer's rows for all heads, by formula (3) of Dai et al. 2019.
  std::vector<Vector> RelativeKeys(const TransformerLayer& layer,
                                   const RelativeSinusoids& positions) const {
    const Vector frequencies = Get(positions.frequencies);
    std::vector<Vector> keys;
    for (size_t distance = 0; distance < decoder.window; ++distance) {
      const size_t counted = std::min<size_t>(distance, positions.clamp.value_or(UINT32_MAX));
      Vector sinusoids;
      for (double f : frequencies) sinusoids.push_back(std::sin(static_cast<double>(counted) * f));
      for (double f : frequencies) sinusoids.push_back(std::cos(static_cast<double>(counted) * f));
      keys.push_back(Multiply(Get(*layer.positions), sinusoids));
    }
    return keys;
  }

  // The term that the position of a key adds to the score of one head, for every distance.
  Vector PositionScores(const TransformerLayer& layer, const Vector& query, size_t head,
                        const std::vector<Vector>& relative) const {
    const size_t dk = decoder.key_size, window = decoder.window;
    Vector scores(window);
    if (std::holds_alternative<SlotPositions>(decoder.positions)) {
      const Vector columns = Get(*layer.positions);
      for (size_t distance = 0; distance < window; ++distance) {
        for (size_t i = 0; i < dk; ++i) {
          scores[distance] += query[i] * columns[i * window + (window - 1 - distance)];
        }
      }
    } else if (!relative.empty()) {
      // `query` has the content bias u already: (q + w) . r = (query - u + w) . r.
      const Vector u = Get(*layer.content_bias), w = Get(*layer.position_bias);
      for (size_t distance = 0; distance < window; ++distance) {
        for (size_t i = 0; i < dk; ++i) {
          const size_t at = head * dk + i;
          scores[distance] += (query[i] - u[at] + w[at]) * relative[distance][at];
        }
      }
    }
    return scores;
  }

  // Queries (content bias added), keys and values of every token, all heads.
  std::vector<Vector> QueriesKeysValues(const TransformerLayer& layer,
                                        const std::vector<Vector>& x) const {
    const size_t dk = decoder.key_size, per_head = 2 * dk + decoder.value_size;
    const auto& quantisers = layer.quantisers;
    std::vector<Vector> qkv;
    for (Vector u : x) {
      if (decoder.norm_order == NormOrder::kPre) {
        u = Norm(u, *layer.attention_norm_gain, *layer.attention_norm_bias);
      }
      if (quantisers) Round(u, quantisers->attention_input);
      Vector y = Multiply(Get(layer.qkv_weight), u, GetAny(layer.qkv_bias));
      const Vector bias = GetAny(layer.content_bias);
      for (size_t i = 0; i < bias.size(); ++i) y[i / dk * per_head + i % dk] += bias[i];
      if (quantisers) Round(y, quantisers->qkv);
      qkv.push_back(std::move(y));
    }
    return qkv;
  }

  Vector Attend(const TransformerLayer& layer, const std::vector<Vector>& qkv, size_t t,
                const std::vector<Vector>& relative) const {
    const size_t dk = decoder.key_size, dv = decoder.value_size, heads = decoder.heads;
    Vector start = GetAny(layer.start);  // of slots before the stream
    start.resize(heads * (dk + dv));
    if (layer.quantisers) Round(start, layer.quantisers->qkv);
    Vector attended;
    for (size_t head = 0; head < heads; ++head) {
      const size_t base = head * (2 * dk + dv);
      const auto at = [&](const Vector& from, size_t first) {
        return from.begin() + static_cast<std::ptrdiff_t>(first);
      };
      const Vector query(at(qkv[t], base), at(qkv[t], base + dk));
      const Vector position = PositionScores(layer, query, head, relative);
      Vector scores;
      std::vector<Vector> values;
      for (size_t distance = decoder.window; distance-- > 0;) {
        const bool before = distance > t;
        if (before && decoder.start == StreamStart::kMasked) continue;
        if (!SameRun(t, distance)) continue;
        const Vector& source = before ? start : qkv[t - distance];
        const size_t key = before ? head * dk : base + dk;
        const size_t value = before ? heads * dk + head * dv : base + 2 * dk;
        double score = position[distance];
        for (size_t i = 0; i < dk; ++i) score += query[i] * source[key + i];
        scores.push_back(score / std::sqrt(static_cast<double>(dk)));
        values.emplace_back(at(source, value), at(source, value + dv));
      }
      Vector weights = LogSoftmax(scores);
      for (double& weight : weights) weight = std::exp(weight);
      if (layer.quantisers) Round(weights, layer.quantisers->weights);
      for (size_t c = 0; c < dv; ++c) {
        double sum = 0;
        for (size_t i = 0; i < weights.size(); ++i) sum += weights[i] * values[i][c];
        attended.push_back(sum);
      }
    }
    if (layer.quantisers) Round(attended, layer.quantisers->attended);
    return attended;
  }

  Vector FeedForward(const TransformerLayer& layer, Vector x) const {
    const auto& quantisers = layer.quantisers;
    if (decoder.norm_order == NormOrder::kPre) {
      x = Norm(x, *layer.inner_norm_gain, *layer.inner_norm_bias);
    }
    if (quantisers) Round(x, quantisers->inner_input);
    Vector inner = Multiply(Get(layer.inner_weight), x, Get(layer.inner_bias));
    for (double& value : inner) value = std::max(value, 0.0);
    if (quantisers) Round(inner, quantisers->inner);
    Vector outer = Multiply(Get(layer.outer_weight), inner, Get(layer.outer_bias));
    if (quantisers) Round(outer, quantisers->outer);
    return outer;
  }

  // One layer over the complete sequence x[t].
  void Layer(const TransformerLayer& layer, std::vector<Vector>& x) const {
    const bool post = decoder.norm_order == NormOrder::kPost;
    std::vector<Vector> relative;
    if (const auto* positions = std::get_if<RelativeSinusoids>(&decoder.positions)) {
      relative = RelativeKeys(layer, *positions);
    }
    const std::vector<Vector> qkv = QueriesKeysValues(layer, x);
    for (size_t t = 0; t < x.size(); ++t) {
      const Vector out =
          Multiply(Get(layer.out_weight), Attend(layer, qkv, t, relative), GetAny(layer.out_bias));
      for (size_t i = 0; i < out.size(); ++i) x[t][i] += out[i];
      if (post) x[t] = Norm(x[t], *layer.attention_norm_gain, *layer.attention_norm_bias);
      const Vector outer = FeedForward(layer, x[t]);
      for (size_t i = 0; i < outer.size(); ++i) x[t][i] += outer[i];
      if (post) x[t] = Norm(x[t], *layer.inner_norm_gain, *layer.inner_norm_bias);
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
  evaluation.AddPositions(x);
  for (const TransformerLayer& layer : evaluation.decoder.layers) evaluation.Layer(layer, x);
  if (const auto& gain = evaluation.decoder.final_norm_gain) {
    for (Vector& hidden : x) {
      hidden = evaluation.Norm(hidden, *gain, *evaluation.decoder.final_norm_bias);
    }
  }
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
