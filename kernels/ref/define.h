// Embedding rows of a DeFINE unit (Map layer, group linear transformations), and their cache.
#ifndef KINGLET_KERNELS_REF_DEFINE_H_
#define KINGLET_KERNELS_REF_DEFINE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "kernels/activation.h"
#include "kernels/backend.h"
#include "kernels/op.h"
#include "kernels/ref/elementwise.h"
#include "kernels/ref/sum.h"

namespace kinglet::ref {

// The layers of a unit (format/define_unit.h). Products are float products of decoded values, in
// the order of rule 4, one for each row and group.
template <class T>
class DefineLayers {
 public:
  DefineLayers(const DefineRows& op, std::span<const TensorView> weights, const ClaimBytes& claim)
      : unit_(op.unit), work_(op.unit) {
    const auto decoded = [&](const std::optional<TensorId>& id) {
      if (!id) return std::vector<float>();
      ClaimFrom(claim, Count(weights[*id].shape) * sizeof(float));
      return DecodedValues(weights[*id]);
    };
    for (const DefineTensors& tensors : op.tensors) {
      values_.push_back({decoded(tensors.weight), decoded(tensors.bias), decoded(tensors.norm_gain),
                         decoded(tensors.norm_offset)});
    }
  }

  // Returns the unit's output, which lies in `work` [DefineWork(unit).total]. The output of Map
  // lies at the start of `work`.
  const T* Apply(T* work) const {
    const T* e = work;
    const T* previous = work;
    T* outputs[] = {work + work_.output, work + work_.output + work_.width,
                    work + work_.output + 2 * work_.width};
    uint64_t width = unit_.map_width;
    for (size_t i = 0; i < unit_.layers.size(); ++i) {
      if (i == unit_.entry_layers && i > 0) {
        std::copy_n(previous, width, work + work_.skip);
        e = work + work_.skip;
      }
      // The third vector contains the previous layer's output.
      ApplyLayer(unit_.layers[i], values_[i], e, previous, width, work + work_.joined, outputs[0],
                 outputs[1]);
      previous = outputs[1];
      std::swap(outputs[1], outputs[2]);
      width = unit_.layers[i].out;
    }
    return previous;
  }

  std::vector<MemoryRange> Memory() const {
    std::vector<MemoryRange> memory;
    for (const Values& layer : values_) {
      for (const auto* values :
           {&layer.weight, &layer.bias, &layer.norm_gain, &layer.norm_offset}) {
        if (!values->empty()) memory.push_back(std::as_bytes(std::span(*values)));
      }
    }
    return memory;
  }

 private:
  // Exact values; empty where the layer has no such tensor.
  struct Values {
    std::vector<float> weight, bias, norm_gain, norm_offset;
  };

  // The chunks of `first`, each followed by the same chunk of `second`.
  static void Interleave(const T* first, uint64_t first_width, const T* second,
                         uint64_t second_width, uint64_t chunks, T* joined) {
    const uint64_t a = first_width / chunks, b = second_width / chunks;
    for (uint64_t chunk = 0; chunk < chunks; ++chunk) {
      joined = std::copy_n(first + chunk * a, a, joined);
      joined = std::copy_n(second + chunk * b, b, joined);
    }
  }

  const T* Input(const DefineLayer& layer, const T* e, const T* previous, uint64_t width,
                 T* joined) const {
    if (layer.skip == DefineLayer::Skip::kNone) return previous;
    const uint64_t chunks = layer.skip == DefineLayer::Skip::kMix ? layer.groups : 1;
    const uint64_t e_width = layer.in - width;
    if (layer.order == DefineLayer::Order::kInputFirst) {
      Interleave(e, e_width, previous, width, chunks, joined);
    } else {
      Interleave(previous, width, e, e_width, chunks, joined);
    }
    return joined;
  }

  static void Normalise(const DefineLayer& layer, const Values& values, T* x) {
    if (layer.norm == DefineLayer::Norm::kNone) return;
    const uint64_t parts = layer.norm == DefineLayer::Norm::kPerGroup ? layer.groups : 1;
    const uint64_t width = layer.out / parts;
    const auto data = [](const std::vector<float>& vector) {
      return vector.empty() ? nullptr : vector.data();
    };
    for (uint64_t part = 0; part < parts; ++part) {
      NormaliseVector(x + part * width, width, static_cast<T>(layer.norm_epsilon),
                      data(values.norm_gain), data(values.norm_offset), x + part * width);
    }
  }

  static void Shuffle(const DefineLayer& layer, const T* from, T* to) {
    const uint64_t width = layer.out / layer.groups;
    for (uint64_t group = 0; group < layer.groups; ++group) {
      for (uint64_t j = 0; j < width; ++j) to[j * layer.groups + group] = *from++;
    }
  }

  // `output` from e and the previous output of `width` features.
  void ApplyLayer(const DefineLayer& layer, const Values& values, const T* e, const T* previous,
                  uint64_t width, T* joined, T* unshuffled, T* output) const {
    const T* input = Input(layer, e, previous, width, joined);
    const bool shuffles = layer.shuffle != DefineLayer::Shuffle::kNone;
    T* product = shuffles ? unshuffled : output;
    const uint64_t in = layer.in / layer.groups, out = layer.out / layer.groups;
    const bool shared = layer.weights == DefineLayer::Weights::kShared;
    for (uint64_t feature = 0; feature < layer.out; ++feature) {
      const float* row = values.weight.data() + (shared ? feature % out : feature) * in;
      const T* chunk = input + feature / out * in;
      T sum = Dot<T>(
          in, [row](size_t i) { return static_cast<T>(row[i]); },
          [chunk](size_t i) { return chunk[i]; });
      if (!values.bias.empty()) {
        sum += static_cast<T>(values.bias[feature % values.bias.size()]);
      }
      product[feature] = sum;
    }
    if (layer.shuffle != DefineLayer::Shuffle::kBeforeNorm) Normalise(layer, values, product);
    if (shuffles) Shuffle(layer, product, output);
    if (layer.shuffle == DefineLayer::Shuffle::kBeforeNorm) Normalise(layer, values, output);

    using Residual = DefineLayer::Residual;
    for (uint64_t feature = 0; feature < layer.out; ++feature) {
      T value = output[feature];
      if (layer.residual == Residual::kBeforeActivation) value += previous[feature];
      value = Activated(layer.activation, value);
      if (layer.residual == Residual::kAfterActivation) value += previous[feature];
      output[feature] = value;
    }
  }

  DefineUnit unit_;
  DefineWork work_;
  std::vector<Values> values_;
};

// `Map` gives a token's vector: bool Row(uint32_t token, T* out), which returns false if the token
// does not exist.
template <class T, class Map>
class DefineRowKernel {
 public:
  // REQUIRES: op.define; `map` has the rows of op.bins.
  DefineRowKernel(const EmbedRow& op, const BufferLayout& layout,
                  std::span<const TensorView> weights, const ClaimBytes& claim, Map map)
      : map_(std::move(map)),
        layers_(std::make_shared<const DefineLayers<T>>(*op.define, weights, claim)),
        cache_(op.define->cache),
        scale_(static_cast<T>(op.scale)),
        out_(layout[op.out]),
        work_(layout[op.define->work]),
        rows_(layout[op.define->rows]),
        row_index_(layout[op.define->row_index]) {}

  void operator()(StreamFrame& frame) const {
    T* out = out_.At<T>(frame);
    T* rows = rows_.At<T>(frame);
    const size_t width = out_.count;
    RowCache cache(cache_, row_index_.At<uint32_t>(frame));
    if (const auto slot = cache.Find(frame.token)) {
      std::copy_n(rows + *slot * width, width, out);
      return;
    }
    T* work = work_.At<T>(frame);
    if (!map_.Row(frame.token, work)) return;
    const T* row = layers_->Apply(work);
    for (size_t i = 0; i < width; ++i) out[i] = row[i] * scale_;
    // The code below cannot fail, so the cache never contains half a row.
    std::copy_n(out, width, rows + cache.Take(frame.token) * width);
  }
  std::vector<MemoryRange> WeightMemory() const { return layers_->Memory(); }
  std::vector<MemoryRange> TokenMemory(uint32_t token) const { return map_.TokenMemory(token); }

 private:
  Map map_;
  std::shared_ptr<const DefineLayers<T>> layers_;
  RowCacheShape cache_;
  T scale_;
  Slot out_, work_, rows_, row_index_;
};

}  // namespace kinglet::ref

#endif  // KINGLET_KERNELS_REF_DEFINE_H_
