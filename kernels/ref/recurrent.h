// The element-wise part of recurrent cells: LSTM, GRU, the plain cell and QRNN. Their products are
// MatVec nodes. The order of gates and the biases follow PyTorch's nn.LSTM and nn.GRU, and
// torchqrnn.
#ifndef KINGLET_KERNELS_REF_RECURRENT_H_
#define KINGLET_KERNELS_REF_RECURRENT_H_

#include <cstddef>
#include <optional>

#include "kernels/backend.h"
#include "kernels/functions.h"
#include "kernels/op.h"

namespace kinglet::ref {

template <class T>
class LstmGatesKernel {
 public:
  LstmGatesKernel(const LstmGates& op, const BufferLayout& layout)
      : input_(layout[op.input]),
        recurrent_(layout[op.recurrent]),
        cell_(layout[op.cell]),
        hidden_(layout[op.hidden]) {}

  void operator()(StreamFrame& frame) const {
    const size_t n = hidden_.count;
    const T* input = input_.At<T>(frame);
    const T* recurrent = recurrent_.At<T>(frame);
    T* cell = cell_.At<T>(frame);
    T* hidden = hidden_.At<T>(frame);
    for (size_t i = 0; i < n; ++i) {
      const auto gate = [&](size_t gate_index) {
        return input[gate_index * n + i] + recurrent[gate_index * n + i];
      };
      const T kept = Sigmoid(gate(1)) * cell[i];
      const T added = Sigmoid(gate(0)) * Tanh(gate(2));
      cell[i] = kept + added;
      hidden[i] = Sigmoid(gate(3)) * Tanh(cell[i]);
    }
  }

 private:
  Slot input_, recurrent_, cell_, hidden_;
};

template <class T>
class GruGatesKernel {
 public:
  GruGatesKernel(const GruGates& op, const BufferLayout& layout)
      : input_(layout[op.input]), recurrent_(layout[op.recurrent]), hidden_(layout[op.hidden]) {}

  void operator()(StreamFrame& frame) const {
    const size_t n = hidden_.count;
    const T* input = input_.At<T>(frame);
    const T* recurrent = recurrent_.At<T>(frame);
    T* hidden = hidden_.At<T>(frame);
    for (size_t i = 0; i < n; ++i) {
      const T reset = Sigmoid(input[i] + recurrent[i]);
      const T keep = Sigmoid(input[n + i] + recurrent[n + i]);
      const T scaled = reset * recurrent[2 * n + i];
      const T candidate = Tanh(input[2 * n + i] + scaled);
      const T fresh = (T{1} - keep) * candidate;
      const T kept = keep * hidden[i];
      hidden[i] = fresh + kept;
    }
  }

 private:
  Slot input_, recurrent_, hidden_;
};

template <class T>
class RnnGatesKernel {
 public:
  RnnGatesKernel(const RnnGates& op, const BufferLayout& layout)
      : input_(layout[op.input]),
        recurrent_(layout[op.recurrent]),
        hidden_(layout[op.hidden]),
        relu_(op.relu) {}

  void operator()(StreamFrame& frame) const {
    const T* input = input_.At<T>(frame);
    const T* recurrent = recurrent_.At<T>(frame);
    T* hidden = hidden_.At<T>(frame);
    for (size_t i = 0; i < hidden_.count; ++i) {
      const T sum = input[i] + recurrent[i];
      hidden[i] = relu_ ? (sum > T{0} ? sum : T{0}) : Tanh(sum);
    }
  }

 private:
  Slot input_, recurrent_, hidden_;
  bool relu_;
};

template <class T>
class QrnnGatesKernel {
 public:
  QrnnGatesKernel(const QrnnGates& op, const BufferLayout& layout)
      : input_(layout[op.input]), cell_(layout[op.cell]), hidden_(layout[op.hidden]) {
    if (op.previous) previous_ = layout[*op.previous];
  }

  void operator()(StreamFrame& frame) const {
    const size_t n = hidden_.count;
    const T* input = input_.At<T>(frame);
    const T* previous = previous_ ? previous_->At<T>(frame) : nullptr;
    T* cell = cell_.At<T>(frame);
    T* hidden = hidden_.At<T>(frame);
    for (size_t i = 0; i < n; ++i) {
      const auto gate = [&](size_t gate_index) {
        const T own = input[gate_index * n + i];
        return previous != nullptr ? own + previous[gate_index * n + i] : own;
      };
      const T forget = Sigmoid(gate(1));
      const T fresh = forget * Tanh(gate(0));
      const T kept = (T{1} - forget) * cell[i];
      cell[i] = fresh + kept;
      hidden[i] = Sigmoid(gate(2)) * cell[i];
    }
  }

 private:
  Slot input_, cell_, hidden_;
  std::optional<Slot> previous_;
};

}  // namespace kinglet::ref

#endif  // KINGLET_KERNELS_REF_RECURRENT_H_
