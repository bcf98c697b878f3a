#include "tests/support/device_backends.h"

#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cuda/backend.h"
#include "kernels/device_program.h"
#include "kernels/ref/ref.h"

namespace kinglet {
namespace {

struct Bound {
  const Plan& plan;
  const BufferLayout& layout;
  std::vector<Kernel> kernels;
  PretendedDevice& device;

  uint64_t BytesPerLane() const { return layout.scratch_bytes + layout.state_bytes; }
};

class PretendedLanes : public DeviceLanes {
 public:
  PretendedLanes(const Bound& bound, uint32_t count)
      : bound_(bound), memory_(count * bound.BytesPerLane() / sizeof(Unit)) {
    bound_.device.memory_bytes -= memory_.size() * sizeof(Unit);
  }
  ~PretendedLanes() override { bound_.device.memory_bytes += memory_.size() * sizeof(Unit); }

  Status Run(NodeRange range, std::span<const StreamFrame> frames) override {
    KINGLET_RETURN_IF_ERROR(Call());
    std::vector<StreamFrame> here(frames.begin(), frames.end());
    for (StreamFrame& frame : here) {
      frame.scratch = StateOf(frame.lane) - bound_.layout.scratch_bytes;
      frame.state = StateOf(frame.lane);
      if (range.begin == bound_.plan.context.begin) ClearUnwritten(frame);
    }
    for (size_t i = range.begin; i < range.end; ++i) bound_.kernels[i].Run(here);
    work_.launches += range.end - range.begin;
    work_.bytes_to_device += frames.size_bytes();
    return Status();
  }
  Status Fetch(std::span<const StreamFrame> frames, std::span<const BufferId> buffers) override {
    KINGLET_RETURN_IF_ERROR(Call());
    for (const StreamFrame& frame : frames) {
      const StreamFrame there{StateOf(frame.lane) - bound_.layout.scratch_bytes,
                              StateOf(frame.lane), 0, 0};
      for (const BufferId id : buffers) {
        const Slot& slot = bound_.layout[id];
        const uint64_t bytes = BytesOf(bound_.plan.buffer(id), slot.count, sizeof(float));
        std::memcpy(slot.At<std::byte>(frame), slot.At<std::byte>(there), bytes);
        work_.bytes_to_host += bytes;
      }
    }
    return Status();
  }
  Status ReadState(uint32_t lane, uint64_t offset, std::span<std::byte> to) override {
    KINGLET_RETURN_IF_ERROR(Call());
    std::memcpy(to.data(), StateOf(lane) + offset, to.size());
    work_.bytes_to_host += to.size();
    return Status();
  }
  Status WriteState(uint32_t lane, uint64_t offset, std::span<const std::byte> from) override {
    KINGLET_RETURN_IF_ERROR(Call());
    std::memcpy(StateOf(lane) + offset, from.data(), from.size());
    work_.bytes_to_device += from.size();
    return Status();
  }
  Status CopyState(uint32_t from, uint32_t to) override {
    KINGLET_RETURN_IF_ERROR(Call());
    std::memcpy(StateOf(to), StateOf(from), bound_.layout.state_bytes);
    return Status();
  }
  Status Wait() override { return Call(); }
  DeviceWork work() const override { return work_; }

 private:
  struct alignas(64) Unit {
    std::byte bytes[64];
  };
  // Reference kernels read zeros where a stream has not written.
  void ClearUnwritten(const StreamFrame& frame) const {
    for (const StateRegion& region : bound_.layout.state_regions) {
      const uint64_t written = region.SlotsWritten(frame.position, frame.source_length);
      std::memset(frame.state + region.offset + written * region.slot_bytes, 0,
                  (region.ring.slots - written) * region.slot_bytes);
    }
  }
  Status Call() {
    if (bound_.device.calls_left == 0) {
      return Status(KINGLET_INTERNAL, "pretended device: fell off the bus");
    }
    --bound_.device.calls_left;
    return Status();
  }
  std::byte* StateOf(uint32_t lane) {
    return reinterpret_cast<std::byte*>(memory_.data()) + lane * bound_.BytesPerLane() +
           bound_.layout.scratch_bytes;
  }

  const Bound& bound_;
  std::vector<Unit> memory_;
  DeviceWork work_;
};

// A device whose lanes begin with rubbish in their state, as after streams of another session:
// every byte is 0xFF, which makes floats NaN, and ids and counts too large.
class RubbishProgram : public DeviceProgram {
 public:
  RubbishProgram(std::shared_ptr<const DeviceProgram> program, const BufferLayout& layout)
      : program_(std::move(program)), state_bytes_(layout.state_bytes) {}
  const std::string& device_name() const override { return program_->device_name(); }
  uint64_t weight_bytes() const override { return program_->weight_bytes(); }
  uint64_t BytesPerLane() const override { return program_->BytesPerLane(); }
  uint64_t FreeBytes() const override { return program_->FreeBytes(); }
  DevicePeaks peaks() const override { return program_->peaks(); }
  std::optional<DeviceDemand> DemandOf(size_t node,
                                       std::span<const StreamFrame> lanes) const override {
    return program_->DemandOf(node, lanes);
  }
  Result<std::unique_ptr<DeviceLanes>> CreateLanes(uint32_t count) const override {
    KINGLET_ASSIGN_OR_RETURN(std::unique_ptr<DeviceLanes> lanes, program_->CreateLanes(count));
    const std::vector<std::byte> rubbish(state_bytes_, std::byte{0xFF});
    for (uint32_t lane = 0; lane < count; ++lane) {
      KINGLET_RETURN_IF_ERROR(lanes->WriteState(lane, 0, rubbish));
    }
    return lanes;
  }

 private:
  std::shared_ptr<const DeviceProgram> program_;
  uint64_t state_bytes_;
};

class PretendedProgram : public DeviceProgram {
 public:
  explicit PretendedProgram(Bound bound) : bound_(std::move(bound)) {}
  const std::string& device_name() const override {
    static const std::string kName = "pretended device";
    return kName;
  }
  uint64_t weight_bytes() const override { return 0; }
  uint64_t BytesPerLane() const override { return bound_.BytesPerLane(); }
  uint64_t FreeBytes() const override { return bound_.device.memory_bytes; }
  Result<std::unique_ptr<DeviceLanes>> CreateLanes(uint32_t count) const override {
    return std::unique_ptr<DeviceLanes>(std::make_unique<PretendedLanes>(bound_, count));
  }

 private:
  Bound bound_;
};

}  // namespace

Backend EmulatedCuda(const cuda::Emulation& emulation) {
  const auto device = cuda::EmulatedDevice(emulation);
  const auto bind = [device](const Plan& plan, const BufferLayout& layout,
                             const ReleaseBytes& release) -> DeviceBinding {
    KINGLET_ASSIGN_OR_RETURN(std::shared_ptr<const DeviceProgram> program,
                             cuda::BindTo(device, plan, layout, release));
    return std::shared_ptr<const DeviceProgram>(
        std::make_shared<RubbishProgram>(std::move(program), layout));
  };
  return {"cuda, emulated", sizeof(float), nullptr, Backends()[0].cluster_functions, bind};
}

Backend PretendedBackend(PretendedDevice& device) {
  const auto bind = [&device](const Plan& plan, const BufferLayout& layout,
                              const ReleaseBytes&) -> DeviceBinding {
    KINGLET_ASSIGN_OR_RETURN(std::vector<Kernel> kernels, ref::BindFloat(plan, layout));
    return std::shared_ptr<const DeviceProgram>(
        std::make_shared<PretendedProgram>(Bound{plan, layout, std::move(kernels), device}));
  };
  return {"pretended", sizeof(float), nullptr, Backends()[0].cluster_functions, bind};
}

}  // namespace kinglet
