// Helpers for calls of the CUDA runtime: errors become a Status, and the calls go to the right
// device. Only in builds with the CUDA toolkit. C++17.
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

// Clears an error that was handled, which the next cudaGetLastError would report again.
inline void ForgetError() { static_cast<void>(cudaGetLastError()); }

// Makes a device the thread's current one, and the caller's device again when this ends.
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

// Returns work(), a Status or a Result, run with this device as the current one.
template <class Work>
auto OnDevice(int device, const Work& work) -> decltype(work()) {
  const CurrentDevice current(device);
  KINGLET_CUDA_RETURN_IF_ERROR(current.error(), "choosing the device");
  return work();
}

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_CUDA_CALLS_H_
