// The activation functions of format/activation.h, for every backend. C++17, because nvcc compiles
// this file too.
#ifndef KINGLET_KERNELS_ACTIVATION_H_
#define KINGLET_KERNELS_ACTIVATION_H_

#include "format/activation.h"
#include "kernels/functions.h"
#include "kernels/host_device.h"

namespace kinglet {

// T: float or double. NaN stays NaN.
template <class T>
KINGLET_HOST_DEVICE inline T Activated(Activation activation, T x) {
  switch (activation) {
    case Activation::kNone:
      return x;
    case Activation::kRelu:
      return x <= T{0} ? T{0} : x;
    case Activation::kGelu:
      return Gelu(x);
    case Activation::kSwish:
      return x * Sigmoid(x);
    case Activation::kTanh:
      return Tanh(x);
    case Activation::kSigmoid:
      return Sigmoid(x);
    case Activation::kLeakyRelu:
      return x < T{0} ? x * static_cast<T>(kLeakySlope) : x;
    case Activation::kDoubleSwish:
      return x * Sigmoid(x - T{1});
    case Activation::kTanhGelu:
      return TanhGelu(x);
  }
  return x;
}

}  // namespace kinglet

#endif  // KINGLET_KERNELS_ACTIVATION_H_
