// Embedding rows of a DeFINE unit (Map layer, group linear transformations), and their cache.
#ifndef KINGLET_KERNELS_REF_DEFINE_H_
#define KINGLET_KERNELS_REF_DEFINE_H_

#include <algorithm>
#include <array>
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
#include "kernels/ref/spelling.h"
#include "kernels/ref/sum.h"

namespace kinglet::ref {

// What the layers of a unit compute of many numbers. A backend may have functions of its own, with
// the same bits.
template <class T>
class DefineFunctions {
 public:
  DefineFunctions(const DefineRows& op, std::span<const TensorView> weights,
                  const ClaimBytes& claim) {
    for (const DefineTensors& tensors : op.tensors) {
      weights_.push_back(DefineValues(tensors.weight, weights, claim));
    }
  }

  // How many vectors Multiply takes at most.
  static constexpr size_t kMostLanes = 1;
  // y[lane] = the group's matrix of the layer times x[lane]: float products of decoded values, in
  // the order of rule 4.
  void Multiply(const DefineLayer& layer, size_t index, uint64_t group, std::span<const T* const> x,
                std::span<T* const> y) const {
    const uint64_t in = layer.in / layer.groups, out = layer.products() / layer.groups;
    const bool shared = layer.weights == DefineLayer::Weights::kShared;
    const float* const matrix = weights_[index].data() + (shared ? 0 : group * out * in);
    MultiplyRows(matrix, out, in, x, y);
  }
  // Gain and offset may be null.
  void Normalise(T* x, size_t n, double epsilon, const float* gain, const float* offset) const {
    NormaliseVector(x, n, static_cast<T>(epsilon), gain, offset, x);
  }
  void Activate(Activation activation, T* x, size_t n) const {
    for (size_t i = 0; i < n; ++i) x[i] = Activated(activation, x[i]);
  }
  std::vector<MemoryRange> Memory() const {
    std::vector<MemoryRange> memory;
    for (const auto& values : weights_) memory.push_back(std::as_bytes(std::span(values)));
    return memory;
  }

 private:
  std::vector<std::vector<float>> weights_;  // by layer
};

// The layers of a unit (format/define_unit.h), for up to Functions::kMostLanes rows at once.
template <class T, class Functions>
class DefineLayers {
 public:
  DefineLayers(const DefineRows& op, std::span<const TensorView> weights, const ClaimBytes& claim,
               Functions functions)
      : unit_(op.unit), work_(op.unit), functions_(std::move(functions)) {
    for (const DefineTensors& tensors : op.tensors) {
      values_.push_back({DefineValues(tensors.bias, weights, claim),
                         DefineValues(tensors.norm_gain, weights, claim),
                         DefineValues(tensors.norm_offset, weights, claim)});
    }
  }

  // Returns where in each of `works` [DefineWork(unit).total] the unit's output lies. The output of
  // Map lies at the start.
  uint64_t Apply(std::span<T* const> works) const {
    uint64_t e = 0, previous = 0;  // offsets in a lane's memory
    uint64_t outputs[] = {work_.output, work_.output + work_.width, work_.output + 2 * work_.width};
    uint64_t width = unit_.map_width;
    for (size_t i = 0; i < unit_.layers.size(); ++i) {
      if (i == unit_.entry_layers && i > 0) {
        for (T* work : works) std::copy_n(work + previous, width, work + work_.skip);
        e = work_.skip;
      }
      // The third vector contains the previous layer's output.
      ApplyLayer(i, works, e, previous, width, outputs[0], outputs[1]);
      previous = outputs[1];
      std::swap(outputs[1], outputs[2]);
      width = unit_.layers[i].out;
    }
    return previous;
  }

  std::vector<MemoryRange> Memory() const {
    std::vector<MemoryRange> memory = functions_.Memory();
    for (const Values& layer : values_) {
      for (const auto* values : {&layer.bias, &layer.norm_gain, &layer.norm_offset}) {
        if (!values->empty()) memory.push_back(std::as_bytes(std::span(*values)));
      }
    }
    return memory;
  }

 private:
  // Exact values; empty where the layer has no such tensor.
  struct Values {
    std::vector<float> bias, norm_gain, norm_offset;
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

  static void Join(const DefineLayer& layer, const T* e, const T* previous, uint64_t width,
                   T* joined) {
    const uint64_t chunks = layer.skip == DefineLayer::Skip::kMix ? layer.groups : 1;
    const uint64_t e_width = layer.in - width;
    if (layer.order == DefineLayer::Order::kInputFirst) {
      Interleave(e, e_width, previous, width, chunks, joined);
    } else {
      Interleave(previous, width, e, e_width, chunks, joined);
    }
  }

  void Normalise(const DefineLayer& layer, const Values& values, T* x) const {
    if (layer.norm == DefineLayer::Norm::kNone) return;
    const uint64_t parts = layer.norm == DefineLayer::Norm::kPerGroup ? layer.groups : 1;
    const uint64_t width = layer.out / parts;
    const auto data = [](const std::vector<float>& vector) {
      return vector.empty() ? nullptr : vector.data();
    };
    for (uint64_t part = 0; part < parts; ++part) {
      functions_.Normalise(x + part * width, width, layer.norm_epsilon, data(values.norm_gain),
                           data(values.norm_offset));
    }
  }

  static void Shuffle(const DefineLayer& layer, const T* from, T* to) {
    const uint64_t width = layer.out / layer.groups;
    for (uint64_t group = 0; group < layer.groups; ++group) {
      for (uint64_t j = 0; j < width; ++j) to[j * layer.groups + group] = *from++;
    }
  }

  // `output` from e and the previous output of `width` features; all are offsets.
  void ApplyLayer(size_t index, std::span<T* const> works, uint64_t e, uint64_t previous,
                  uint64_t width, uint64_t unshuffled, uint64_t output) const {
    const DefineLayer& layer = unit_.layers[index];
    const bool joins = layer.skip != DefineLayer::Skip::kNone;
    if (joins) {
      for (T* work : works) {
        Join(layer, work + e, work + previous, width, work + work_.joined);
      }
    }
    const uint64_t input = joins ? work_.joined : previous;
    const bool in_place = layer.shuffle == DefineLayer::Shuffle::kNone &&
                          layer.residual != DefineLayer::Residual::kHighway;
    const uint64_t product = in_place ? output : unshuffled;
    const uint64_t in = layer.in / layer.groups, out = layer.products() / layer.groups;
    std::array<const T*, Functions::kMostLanes> x;
    std::array<T*, Functions::kMostLanes> y;
    for (uint64_t group = 0; group < layer.groups; ++group) {
      for (size_t lane = 0; lane < works.size(); ++lane) {
        x[lane] = works[lane] + input + group * in;
        y[lane] = works[lane] + product + group * out;
      }
      functions_.Multiply(layer, index, group, std::span(x).first(works.size()),
                          std::span(y).first(works.size()));
    }
    for (T* work : works) {
      Finish(layer, values_[index], work + previous, work + product, work + output);
    }
  }

  void Finish(const DefineLayer& layer, const Values& values, const T* previous, T* product,
              T* output) const {
    const std::vector<float>& bias = values.bias;
    for (uint64_t i = 0; !bias.empty() && i < layer.products(); ++i) {
      product[i] += static_cast<T>(bias[i % bias.size()]);
    }
    if (layer.residual == DefineLayer::Residual::kHighway) {
      return PassHighway(layer, previous, product, output);
    }
    if (layer.shuffle != DefineLayer::Shuffle::kBeforeNorm) Normalise(layer, values, product);
    if (layer.shuffle != DefineLayer::Shuffle::kNone) Shuffle(layer, product, output);
    if (layer.shuffle == DefineLayer::Shuffle::kBeforeNorm) Normalise(layer, values, output);
    const auto add_previous = [&] {
      for (uint64_t i = 0; i < layer.out; ++i) output[i] += previous[i];
    };
    if (layer.residual == DefineLayer::Residual::kBeforeActivation) add_previous();
    functions_.Activate(layer.activation, output, layer.out);
    if (layer.residual == DefineLayer::Residual::kAfterActivation) add_previous();
  }

  void PassHighway(const DefineLayer& layer, const T* previous, T* product, T* output) const {
    T* const gates = product + layer.out;
    functions_.Activate(layer.activation, product, layer.out);
    functions_.Activate(Activation::kSigmoid, gates, layer.out);
    for (uint64_t i = 0; i < layer.out; ++i) {
      output[i] = gates[i] * previous[i] + (1 - gates[i]) * product[i];
    }
  }

  DefineUnit unit_;
  DefineWork work_;
  Functions functions_;
  std::vector<Values> values_;
};

// `Map` gives a token's vector: bool Row(uint32_t token, T* out), which returns false if the token
// does not exist. `Spelled` is a SpelledRows.
template <class T, class Map, class Spelled, class Functions>
class DefineRowKernel {
 public:
  // REQUIRES: `map` has the rows of the unit's tables, and `spelled` those of its bin with a
  // spelling, if there is one.
  DefineRowKernel(const EmbedRow& op, const DefineRows& unit, const BufferLayout& layout,
                  std::span<const TensorView> weights, const ClaimBytes& claim, Map map,
                  std::shared_ptr<const Spelled> spelled, Functions functions)
      : map_(std::move(map)),
        spelled_(std::move(spelled)),
        layers_(std::make_shared<const DefineLayers<T, Functions>>(unit, weights, claim,
                                                                   std::move(functions))),
        cache_(unit.cache),
        scale_(static_cast<T>(op.scale)),
        out_(layout[op.out]),
        work_(layout[unit.work]),
        rows_(layout[unit.rows]),
        row_index_(layout[unit.row_index]) {
    if (unit.spelling) spelling_ = layout[*unit.spelling];
  }

  // Tokens of other bins are left alone. Rows that a stream's cache lacks are computed together.
  void operator()(std::span<StreamFrame> frames, Chunks /*all*/) const {
    std::array<StreamFrame*, Functions::kMostLanes> missing;
    size_t count = 0;
    for (StreamFrame& frame : frames) {
      RowCache cache(cache_, row_index_.At<uint32_t>(frame));
      if (const auto slot = cache.Find(frame.word())) {
        std::copy_n(rows_.At<T>(frame) + *slot * out_.count, out_.count, out_.At<T>(frame));
      } else if (MapRow(frame)) {
        missing[count++] = &frame;
      }
      if (count == missing.size()) Compute(std::span(missing).first(std::exchange(count, 0)));
    }
    Compute(std::span(missing).first(count));
  }
  std::vector<MemoryRange> TokenMemory(uint32_t token) const {
    const bool spells = spelled_ != nullptr && spelled_->Has(token);
    std::vector<MemoryRange> memory = spells ? spelled_->Memory() : map_.TokenMemory(token);
    if (memory.empty()) return memory;
    for (const MemoryRange& range : layers_->Memory()) memory.push_back(range);
    return memory;
  }

 private:
  // The output of Map for the frame's word, at the start of `work`; false if this unit has no such
  // word.
  bool MapRow(const StreamFrame& frame) const {
    if (spelled_ == nullptr || !spelled_->Has(frame.word())) {
      return map_.Row(frame.word(), work_.At<T>(frame));
    }
    spelled_->Row(frame.spelling, spelling_.At<T>(frame), work_.At<T>(frame));
    return true;
  }
  void Compute(std::span<StreamFrame* const> frames) const {
    std::array<T*, Functions::kMostLanes> works;
    for (size_t i = 0; i < frames.size(); ++i) works[i] = work_.At<T>(*frames[i]);
    const uint64_t output = layers_->Apply(std::span(works).first(frames.size()));
    for (size_t i = 0; i < frames.size(); ++i) {
      T* const out = out_.At<T>(*frames[i]);
      for (size_t k = 0; k < out_.count; ++k) out[k] = works[i][output + k] * scale_;
      // Two frames of one stream may have lacked the same row.
      RowCache cache(cache_, row_index_.At<uint32_t>(*frames[i]));
      if (cache.Find(frames[i]->word())) continue;
      // The code below cannot fail, so the cache never contains half a row.
      std::copy_n(out, out_.count,
                  rows_.At<T>(*frames[i]) + cache.Take(frames[i]->word()) * out_.count);
    }
  }

  Map map_;
  std::shared_ptr<const Spelled> spelled_;  // null without a bin with a spelling
  std::shared_ptr<const DefineLayers<T, Functions>> layers_;
  RowCacheShape cache_;
  T scale_;
  Slot out_, work_, rows_, row_index_, spelling_ = {};
};

// The kernel of an EmbedRow with units. `make_unit(unit)` makes the DefineRowKernel of a unit,
// `make_plain(bins)` the frame kernel of the bins without one.
Kernel BindUnits(const EmbedRow& op, auto make_unit, auto make_plain) {
  using Unit = decltype(make_unit(op.units[0]));
  using Plain = decltype(make_plain(op.bins));
  struct Rows {
    std::vector<Unit> units;
    std::optional<Plain> plain;
    void operator()(std::span<StreamFrame> frames, Chunks all) const {
      for (const Unit& unit : units) unit(frames, all);
      if (!plain) return;
      for (StreamFrame& frame : frames) (*plain)(frame);
    }
  };
  Rows rows;
  for (const DefineRows& unit : op.units) rows.units.push_back(make_unit(unit));
  if (const auto plain = op.BinsWithoutUnit(); !plain.empty()) rows.plain = make_plain(plain);
  Kernel made;
  made.token_weights = [rows](uint32_t token) {
    std::vector<MemoryRange> memory;
    if (rows.plain) memory = rows.plain->TokenMemory(token);
    for (size_t i = 0; memory.empty() && i < rows.units.size(); ++i) {
      memory = rows.units[i].TokenMemory(token);
    }
    return memory;
  };
  made.phases.push_back({std::move(rows)});
  return made;
}

}  // namespace kinglet::ref

#endif  // KINGLET_KERNELS_REF_DEFINE_H_
