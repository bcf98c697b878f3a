#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "kernels/cuda/functions_check.h"
#include "kernels/functions.h"

namespace kinglet::cuda {
// Named, though only this file uses the namespace: nvcc names an anonymous namespace after the
// source's folder.
inline namespace functions_on_device {

__device__ float Apply(Function function, float x) {
  switch (function) {
    case Function::kExp:
      return Exp(x);
    case Function::kLog:
      return Log(x);
    case Function::kSigmoid:
      return Sigmoid(x);
    case Function::kTanh:
      return Tanh(x);
    case Function::kGelu:
      return Gelu(x);
    case Function::kSoftmaxTerm:
      return SoftmaxTerm(x);
  }
  return x;
}

__global__ void Evaluate(Function function, const float* x, size_t n, float* out) {
  const size_t stride = static_cast<size_t>(gridDim.x) * blockDim.x;
  for (size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += stride) {
    out[i] = Apply(function, x[i]);
  }
}

CheckOutcome Failed(const char* call, cudaError_t error) {
  return {CheckCode::kFailed, std::string(call) + ": " + cudaGetErrorString(error)};
}

// Device memory that is freed with its owner.
class DeviceFloats {
 public:
  explicit DeviceFloats(size_t n) : error_(cudaMalloc(&memory_, n * sizeof(float))) {}
  DeviceFloats(const DeviceFloats&) = delete;
  DeviceFloats& operator=(const DeviceFloats&) = delete;
  ~DeviceFloats() {
    // An error at this point comes from an earlier kernel, and was reported.
    if (error_ == cudaSuccess) static_cast<void>(cudaFree(memory_));
  }
  cudaError_t error() const { return error_; }
  float* data() const { return memory_; }

 private:
  float* memory_ = nullptr;
  cudaError_t error_;
};

}  // namespace functions_on_device

CheckOutcome EvaluateOnDevice(Function function, const float* x, size_t n, float* out) {
  int devices = 0;
  const cudaError_t counted = cudaGetDeviceCount(&devices);
  if (counted != cudaSuccess) {
    return {CheckCode::kNoDevice,
            std::string("cudaGetDeviceCount: ") + cudaGetErrorString(counted)};
  }
  if (devices == 0) return {CheckCode::kNoDevice, "cudaGetDeviceCount: no device"};
  if (n == 0) return {};
  if (n > SIZE_MAX / sizeof(float)) return {CheckCode::kFailed, "n: more floats than memory"};

  const DeviceFloats input(n), output(n);
  if (input.error() != cudaSuccess) return Failed("cudaMalloc", input.error());
  if (output.error() != cudaSuccess) return Failed("cudaMalloc", output.error());
  cudaError_t error = cudaMemcpy(input.data(), x, n * sizeof(float), cudaMemcpyHostToDevice);
  if (error != cudaSuccess) return Failed("cudaMemcpy to the device", error);
  constexpr unsigned kBlocks = 1024, kThreads = 256;
  Evaluate<<<kBlocks, kThreads>>>(function, input.data(), n, output.data());
  error = cudaGetLastError();
  if (error != cudaSuccess) return Failed("launch", error);
  error = cudaDeviceSynchronize();
  if (error != cudaSuccess) return Failed("cudaDeviceSynchronize", error);
  error = cudaMemcpy(out, output.data(), n * sizeof(float), cudaMemcpyDeviceToHost);
  if (error != cudaSuccess) return Failed("cudaMemcpy to the host", error);
  return {};
}

}  // namespace kinglet::cuda
