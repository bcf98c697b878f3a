// A plan bound to a device: its weights in the device's memory, and its steps. Immutable; shared by
// any number of sessions, each with a queue of its own.
#ifndef KINGLET_KERNELS_CUDA_PROGRAM_H_
#define KINGLET_KERNELS_CUDA_PROGRAM_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "kernels/backend.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/queries.h"
#include "kernels/device_program.h"
#include "kernels/plan.h"

namespace kinglet::cuda {

class Program {
 public:
  // Refuses what it cannot run, naming the operation and the step (KINGLET_UNSUPPORTED);
  // KINGLET_OUT_OF_MEMORY.
  static Result<std::shared_ptr<const Program>> Bind(const Plan& plan, const BufferLayout& layout,
                                                     const std::shared_ptr<Device>& device,
                                                     const ReleaseBytes& release);

  const std::shared_ptr<Device>& device() const { return device_; }
  // What plan steps [begin, end) became.
  StepList List(StepRange range) const;
  // One run of plan step `step`; nothing if it became part of another.
  std::optional<DeviceDemand> DemandOf(size_t step, std::span<const StreamFrame> lanes) const;
  const Queries& queries() const { return queries_; }
  uint64_t temporary_bytes() const { return temporary_bytes_; }  // of a lane
  uint64_t weight_bytes() const { return weight_bytes_; }

 private:
  explicit Program(std::shared_ptr<Device> device) : device_(std::move(device)) {}

  std::shared_ptr<Device> device_;
  std::vector<DeviceMemory> memory_;
  std::vector<Step> steps_;
  std::vector<uint32_t> firsts_;  // of plan step i among steps_; one more than there are plan steps
  const Step* on_device_ = nullptr;
  Queries queries_;
  uint64_t temporary_bytes_ = 0, weight_bytes_ = 0;
};

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_PROGRAM_H_
