// Normalisation, activation functions, quantising and sums.
#ifndef KINGLET_KERNELS_REF_ELEMENTWISE_H_
#define KINGLET_KERNELS_REF_ELEMENTWISE_H_

#include <cmath>
#include <vector>

#include "kernels/activation.h"
#include "kernels/ref/operand.h"
#include "kernels/ref/quantise.h"
#include "kernels/ref/sum.h"
#include "kernels/ref/weights.h"

namespace kinglet::ref {

// y = (x - mean) / sqrt(variance + epsilon) * gain + bias over n values, without gain or bias if
// they are null. Mean first, then variance; a division and a square root (no reciprocal root): rule
// 4. y may be x.
template <class T>
void NormaliseVector(const T* x, size_t n, T epsilon, const float* gain, const float* bias, T* y) {
  const T mean = Sum(x, n) / static_cast<T>(n);
  const auto centred = [x, mean](size_t i) { return x[i] - mean; };
  const T variance = Dot<T>(n, centred, centred) / static_cast<T>(n);
  const T deviation = std::sqrt(variance + epsilon);
  for (size_t i = 0; i < n; ++i) {
    T value = centred(i) / deviation;
    if (gain != nullptr) value *= static_cast<T>(gain[i]);
    if (bias != nullptr) value += static_cast<T>(bias[i]);
    y[i] = value;
  }
}

template <class T>
class LayerNormKernel {
 public:
  LayerNormKernel(const LayerNorm& op, const BufferLayout& layout, WeightStore& store)
      : x_(layout[op.x]),
        y_(layout[op.y]),
        gain_(store.Get(op.gain)),
        bias_(store.Get(op.bias)),
        epsilon_(static_cast<T>(op.epsilon)) {}

  void operator()(StreamFrame& frame) const {
    NormaliseVector(x_.At<T>(frame), x_.count, epsilon_, gain_->values.data(), bias_->values.data(),
                    y_.At<T>(frame));
  }
  std::vector<MemoryRange> WeightMemory() const {
    return {gain_->Memory(false)[0], bias_->Memory(false)[0]};
  }

 private:
  Slot x_, y_;
  SharedWeights gain_, bias_;
  T epsilon_;
};

// Sums, division and square root as in NormaliseVector.
template <class T>
class RootMeanSquareNormKernel {
 public:
  RootMeanSquareNormKernel(const RootMeanSquareNorm& op, const BufferLayout& layout)
      : x_(layout[op.x]), y_(layout[op.y]), epsilon_(static_cast<T>(op.epsilon)) {}

  void operator()(StreamFrame& frame) const {
    const T* x = x_.At<T>(frame);
    T* y = y_.At<T>(frame);
    const auto element = [x](size_t i) { return x[i]; };
    const T square = Dot<T>(x_.count, element, element) / static_cast<T>(x_.count);
    const T deviation = std::sqrt(square + epsilon_);
    for (size_t i = 0; i < x_.count; ++i) y[i] = x[i] / deviation;
  }

 private:
  Slot x_, y_;
  T epsilon_;
};

template <class T>
class ActivateKernel {
 public:
  ActivateKernel(const ApplyActivation& op, const BufferLayout& layout)
      : x_(layout[op.x]), activation_(op.activation) {}

  void operator()(StreamFrame& frame) const {
    T* x = x_.At<T>(frame);
    for (size_t i = 0; i < x_.count; ++i) x[i] = Activated(activation_, x[i]);
  }

 private:
  Slot x_;
  Activation activation_;
};

template <class T>
class QuantiseKernel {
 public:
  QuantiseKernel(const Quantise& op, const Plan& plan, const BufferLayout& layout)
      : x_(layout[op.x]),
        codes_(plan, layout, op.codes),
        quantiser_(*plan.buffer(op.codes).quantiser) {}

  void operator()(StreamFrame& frame) const {
    const T* x = x_.At<T>(frame);
    for (size_t i = 0; i < x_.count; ++i) codes_.SetCode(frame, i, QuantisedCode(x[i], quantiser_));
  }

 private:
  Slot x_;
  Operand<T> codes_;
  ActivationQuantiser quantiser_;
};

template <class T>
class AddKernel {
 public:
  AddKernel(const Add& op, const Plan& plan, const BufferLayout& layout)
      : x_(plan, layout, op.x), y_(layout[op.y]) {}

  void operator()(StreamFrame& frame) const {
    T* y = y_.At<T>(frame);
    for (size_t i = 0; i < y_.count; ++i) y[i] += x_.Value(frame, i);
  }

 private:
  Operand<T> x_;
  Slot y_;
};

template <class T>
class JoinKernel {
 public:
  JoinKernel(const Join& op, const BufferLayout& layout) : y_(layout[op.y]) {
    for (const JoinPart& part : op.parts) parts_.push_back({layout[part.x], part});
  }

  void operator()(StreamFrame& frame) const {
    T* y = y_.At<T>(frame);
    uint64_t at = 0;
    for (const auto& [x, part] : parts_) {
      std::copy_n(x.template At<T>(frame) + part.first, part.count, y + at);
      at += part.count;
    }
    std::fill(y + at, y + y_.count, T{0});
  }

 private:
  struct Part {
    Slot x;
    JoinPart part;
  };
  std::vector<Part> parts_;
  Slot y_;
};

template <class T>
class AddScalarKernel {
 public:
  AddScalarKernel(const AddScalar& op, const BufferLayout& layout)
      : op_(op), x_(layout[op.x]), y_(layout[op.y]) {}

  void operator()(StreamFrame& frame) const {
    const T added = x_.At<T>(frame)[op_.index];
    T* y = y_.At<T>(frame) + op_.first;
    for (uint32_t i = 0; i < op_.count; ++i) y[i] += added;
  }

 private:
  AddScalar op_;
  Slot x_, y_;
};

}  // namespace kinglet::ref

#endif  // KINGLET_KERNELS_REF_ELEMENTWISE_H_
