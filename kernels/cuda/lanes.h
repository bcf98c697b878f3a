// The memory of a session's lanes on a device of this folder: DeviceProgram and DeviceLanes
// (kernels/device_program.h) for a Program.
#ifndef KINGLET_KERNELS_CUDA_LANES_H_
#define KINGLET_KERNELS_CUDA_LANES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/cuda/program.h"
#include "kernels/device_program.h"

namespace kinglet::cuda {

// The layout of a lane's memory on the device: the plan's scratch buffers, its state, and the
// temporary memory of device nodes (node.h), one after the other.
struct LaneLayout {
  // With `shares_state` the lanes are tokens of a text, whose state is after the last lane.
  LaneLayout(const Program& program, const Plan& plan, const BufferLayout& buffers,
             bool shares_state = false);

  // The bytes of Lane structs for `count` lanes: one for each lane, and one for each of its tails.
  static uint64_t LanesOf(const Program& program, uint64_t count) {
    return std::max<uint64_t>(program.queries().clusters(), 1) * count * sizeof(Lane);
  }

  uint64_t state, temporary;  // offsets where they begin; scratch begins at 0
  uint64_t bytes;             // of a lane
  uint64_t state_bytes;
  uint32_t longest_spelling = 0;       // bytes of a lane's word that nodes read
  const std::vector<Slot>& slots;      // of the plan's buffers
  std::vector<uint64_t> buffer_bytes;  // without padding
};

// A Program together with its plan's layout: what the session gets.
class BoundPlan : public DeviceProgram {
 public:
  BoundPlan(std::shared_ptr<const Program> program, const Plan& plan, const BufferLayout& layout)
      : program_(std::move(program)), layout_(*program_, plan, layout) {}

  const std::string& device_name() const override { return program_->device()->name(); }
  uint64_t weight_bytes() const override { return program_->weight_bytes(); }
  uint64_t BytesPerLane() const override {
    return layout_.bytes + LaneLayout::LanesOf(*program_, 1) + layout_.longest_spelling;
  }
  uint64_t FreeBytes() const override;  // less what all lanes share
  DevicePeaks peaks() const override { return program_->device()->peaks(); }
  std::optional<DeviceDemand> DemandOf(size_t node,
                                       std::span<const StreamFrame> lanes) const override {
    return program_->DemandOf(node, lanes);
  }
  Result<std::unique_ptr<DeviceLanes>> CreateLanes(uint32_t count) const override;

 private:
  std::shared_ptr<const Program> program_;
  LaneLayout layout_;
};

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_LANES_H_
