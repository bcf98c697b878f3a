// How the thread blocks of a launch of several nodes wait for each other, and which ways a device
// has.
#ifndef KINGLET_KERNELS_CUDA_LAUNCH_BARRIER_H_
#define KINGLET_KERNELS_CUDA_LAUNCH_BARRIER_H_

#include <cstdint>

#include "kinglet/status.h"

namespace kinglet::cuda {

// The barrier of all thread blocks of a launch between two nodes: kNone for launches of one node,
// kGrid for a cooperative launch, kCluster for a thread-block cluster.
enum class LaunchBarrier : uint8_t { kNone, kGrid, kCluster };

// Whether a kernel's thread blocks can wait for their thread-block cluster. `device_major` is the
// device's compute capability. `ptx_version` is cudaFuncAttributes::ptxVersion, the virtual
// architecture that the kernel's source was compiled for (90 for compute_90). The device alone does
// not decide: code compiled for 8.0 also runs on a device of 9.0, by way of PTX, but its source was
// compiled without the wait.
constexpr bool HasClusterBarrier(int device_major, int ptx_version) {
  return device_major >= 9 && ptx_version >= 90;
}

// An environment variable that allows only one kind of launch, so that each kind can be checked on
// one device: "cluster", "grid", or "step", where each node is a launch of its own. With each of
// them a plan's nodes are not joined (Device::IsNodeByNode). Results do not depend on the kind.
inline constexpr const char* kLaunchVariable = "KINGLET_CUDA_LAUNCHES";

// The barriers that launches may have.
struct LaunchBarriers {
  bool cluster = false, grid = false;
  bool required = false;  // nodes may not be launched one by one where the barrier does not fit

  bool Has(LaunchBarrier barrier) const {
    return barrier == LaunchBarrier::kCluster ? cluster : barrier == LaunchBarrier::kGrid && grid;
  }
  // The barriers that `asked`, the value of kLaunchVariable, allows: all barriers if it is null or
  // "". KINGLET_UNSUPPORTED for a barrier that the device lacks, or for another text.
  Result<LaunchBarriers> Allowed(const char* asked) const;
  // KINGLET_UNSUPPORTED if the barriers are required.
  Status MayGoWithout() const;
};

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_LAUNCH_BARRIER_H_
