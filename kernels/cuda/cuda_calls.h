// Calls of the CUDA runtime: their errors as Status, on the device that they are meant for. Only in
// builds with the CUDA toolkit. C++17.
#ifndef KINGLET_KERNELS_CUDA_CUDA_CALLS_H_
#define KINGLET_KERNELS_CUDA_CUDA_CALLS_H_

#include <cuda_runtime.h>

#include "kinglet/status.h"

namespace kinglet::cuda {

inline Status Failed(const char* call, cudaError_t error) {
  const StatusCode code =
      error == cudaErrorMemoryAllocation ? KINGLET_OUT_OF_MEMORY : KINGLET_INTERNAL;
  return Status::Refusal(code, "cuda", call, "success", cudaGetErrorString(error));
}

#define KINGLET_CUDA_RETURN_IF_ERROR(call, name)                    \
  do {                                                              \
    if (const cudaError_t error_ = (call); error_ != cudaSuccess) { \
      return ::kinglet::cuda::Failed(name, error_);                 \
    }                                                               \
  } while (false)

// An error that was dealt with: the next call would report it again.
inline void ForgetError() { static_cast<void>(cudaGetLastError()); }

// A thread's current device for as long as this lives; then again the one that the caller had.
class CurrentDevice {
 public:
  explicit CurrentDevice(int device) {
    error_ = cudaGetDevice(&before_);
    if (error_ != cudaSuccess || before_ == device) return;
    error_ = cudaSetDevice(device);
    restores_ = error_ == cudaSuccess;
  }
  ~CurrentDevice() {
    if (restores_) static_cast<void>(cudaSetDevice(before_));
  }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;
  cudaError_t error() const { return error_; }

 private:
  int before_ = 0;
  bool restores_ = false;
  cudaError_t error_;
};

// What work(), which returns a Status or a Result, does on the device.
template <class Work>
auto OnDevice(int device, const Work& work) -> decltype(work()) {
  const CurrentDevice current(device);
  KINGLET_CUDA_RETURN_IF_ERROR(current.error(), "choosing the device");
  return work();
}

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_CUDA_CALLS_H_
