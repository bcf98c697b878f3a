// Activation functions, which networks apply to each element of a vector.
// C++17: nvcc compiles this file too.
#ifndef KINGLET_FORMAT_ACTIVATION_H_
#define KINGLET_FORMAT_ACTIVATION_H_

#include <array>
#include <cstdint>
#include <string_view>

namespace kinglet {

// The first six are those of a DeFINE unit (format/define_unit.h).
enum class Activation : uint8_t {
  kNone = 0,
  kRelu = 1,   // max(x, 0)
  kGelu = 2,   // x Phi(x), with the error function
  kSwish = 3,  // x sigmoid(x)
  kTanh = 4,
  kSigmoid = 5,
  kLeakyRelu = 6,    // x, or kLeakySlope x where x < 0
  kDoubleSwish = 7,  // x sigmoid(x - 1) (icefall)
  kTanhGelu = 8,     // GELU with a tangent for the error function (GPT-2), kernels/functions.h
};
constexpr std::array<std::string_view, 9> NamesOf(Activation /*kind*/) {
  return {"none",    "relu",       "gelu",         "swish",    "tanh",
          "sigmoid", "leaky_relu", "double_swish", "tanh_gelu"};
}

inline constexpr double kLeakySlope = 0.01;  // PyTorch's default

}  // namespace kinglet

#endif  // KINGLET_FORMAT_ACTIVATION_H_
