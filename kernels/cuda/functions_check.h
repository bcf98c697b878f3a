// Evaluates the elementary functions of kernels/functions.h on the first CUDA device, so that a
// test can compare their bits with the host's. C++17.
#ifndef KINGLET_KERNELS_CUDA_FUNCTIONS_CHECK_H_
#define KINGLET_KERNELS_CUDA_FUNCTIONS_CHECK_H_

#include <cstddef>
#include <string>

namespace kinglet::cuda {

enum class CheckCode {
  kOk,
  kNoDevice,  // no driver, or no device that it can use
  kFailed,    // a call on the device failed
};

struct CheckOutcome {
  CheckCode code = CheckCode::kOk;
  std::string message;  // the failed call and CUDA's reason; empty when ok
};

enum class Function { kExp, kLog, kSigmoid, kTanh, kGelu, kSoftmaxTerm };

// out[i] = function(x[i]) for i < n, computed on the device. Both arrays are the host's; `out` is
// untouched unless the outcome is kOk.
CheckOutcome EvaluateOnDevice(Function function, const float* x, size_t n, float* out);

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_FUNCTIONS_CHECK_H_
