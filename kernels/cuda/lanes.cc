#include "kernels/cuda/lanes.h"

#include <new>
#include <string>
#include <utility>

namespace kinglet::cuda {
namespace {

constexpr uint64_t RoundedUp(uint64_t bytes) {
  constexpr uint64_t kAlignment = 256;  // as the device's own memory
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

class ProgramLanes : public DeviceLanes {
 public:
  ProgramLanes(std::shared_ptr<const Program> program, const LaneLayout& layout,
               std::unique_ptr<Queue> queue, DeviceMemory memory, DeviceMemory frames,
               uint32_t count)
      : program_(std::move(program)),
        layout_(layout),
        memory_(std::move(memory)),
        frames_(std::move(frames)),
        queue_(std::move(queue)) {
    lanes_.reserve(count);
  }

  Status Run(StepRange range, std::span<const Frame> frames) override {
    if (frames.empty()) return status_;
    return Attempt([&]() -> Status {
      lanes_.clear();
      for (const Frame& frame : frames) {
        std::byte* const base = LaneAt(frame.lane);
        lanes_.push_back({base, base + layout_.state, base + layout_.temporary, frame.position,
                          frame.source_length, frame.token});
      }
      KINGLET_RETURN_IF_ERROR(
          queue_->Upload(frames_.data(), lanes_.data(), lanes_.size() * sizeof(Lane)));
      return queue_->Run(program_->List(range), reinterpret_cast<const Lane*>(frames_.data()),
                         static_cast<uint32_t>(lanes_.size()));
    });
  }

  Status Fetch(std::span<const Frame> frames, std::span<const BufferId> buffers) override {
    return Attempt([&]() -> Status {
      for (const Frame& frame : frames) {
        for (const BufferId id : buffers) {
          const Slot& slot = layout_.slots[static_cast<size_t>(id)];
          const std::byte* const from =
              LaneAt(frame.lane) + (slot.state ? layout_.state : 0) + slot.offset;
          KINGLET_RETURN_IF_ERROR(queue_->Download(slot.At<std::byte>(frame), from,
                                                   layout_.buffer_bytes[static_cast<size_t>(id)]));
        }
      }
      return Status();
    });
  }

  Status ReadState(uint32_t lane, uint64_t offset, std::span<std::byte> to) override {
    return Attempt([&] { return queue_->Download(to.data(), StateAt(lane) + offset, to.size()); });
  }
  Status WriteState(uint32_t lane, uint64_t offset, std::span<const std::byte> from) override {
    return Attempt(
        [&] { return queue_->Upload(StateAt(lane) + offset, from.data(), from.size()); });
  }
  Status ClearState(uint32_t lane, uint64_t offset, uint64_t bytes) override {
    return Attempt([&] { return queue_->Zero(StateAt(lane) + offset, bytes); });
  }
  Status CopyState(uint32_t from, uint32_t to) override {
    return Attempt([&] { return queue_->Copy(StateAt(to), StateAt(from), layout_.state_bytes); });
  }

  Status Wait() override {
    return Attempt([&] { return queue_->Wait(); });
  }
  DeviceWork work() const override {
    const QueueWork& work = queue_->work();
    return {work.launches, work.bytes_to_device, work.bytes_to_host};
  }

 private:
  // What fails leaves half of something behind, also where it was the host that had no memory left.
  template <class Work>
  Status Attempt(const Work& work) {
    if (!status_.ok()) return status_;
    try {
      status_ = work();
    } catch (const std::bad_alloc&) {
      status_ = Status(KINGLET_OUT_OF_MEMORY, "cuda: out of memory of the host");
    }
    return status_;
  }
  std::byte* LaneAt(uint32_t lane) const { return memory_.data() + lane * layout_.bytes; }
  std::byte* StateAt(uint32_t lane) const { return LaneAt(lane) + layout_.state; }

  std::shared_ptr<const Program> program_;
  const LaneLayout& layout_;  // the bound plan's
  DeviceMemory memory_;
  DeviceMemory frames_;  // the lanes that run steps, as these know them
  std::unique_ptr<Queue> queue_;
  std::vector<Lane> lanes_;  // the same on the host
  Status status_;
};

}  // namespace

LaneLayout::LaneLayout(const Program& program, const Plan& plan, const BufferLayout& buffers)
    : state(RoundedUp(buffers.scratch_bytes)),
      temporary(state + RoundedUp(buffers.state_bytes)),
      bytes(temporary + RoundedUp(program.temporary_bytes())),
      state_bytes(buffers.state_bytes),
      slots(buffers.slots) {
  for (const BufferSpec& buffer : plan.buffers) {
    buffer_bytes.push_back(buffer.count * ElementBytes(buffer.element, sizeof(float)));
  }
}

Result<std::unique_ptr<DeviceLanes>> BoundPlan::CreateLanes(uint32_t count) const {
  const std::shared_ptr<Device>& device = program_->device();
  if (count > SIZE_MAX / BytesPerLane()) {
    return Status::Refusal(
        KINGLET_OUT_OF_MEMORY, "cuda", "lanes", "a size that can be addressed",
        std::to_string(count) + " of " + std::to_string(BytesPerLane()) + " bytes");
  }
  KINGLET_ASSIGN_OR_RETURN(DeviceMemory memory,
                           DeviceMemory::Allocate(device, count * layout_.bytes));
  KINGLET_ASSIGN_OR_RETURN(DeviceMemory frames,
                           DeviceMemory::Allocate(device, count * sizeof(Lane)));
  KINGLET_ASSIGN_OR_RETURN(std::unique_ptr<Queue> queue, device->CreateQueue());
  KINGLET_RETURN_IF_ERROR(queue->Zero(memory.data(), count * layout_.bytes));
  return std::unique_ptr<DeviceLanes>(std::make_unique<ProgramLanes>(
      program_, layout_, std::move(queue), std::move(memory), std::move(frames), count));
}

}  // namespace kinglet::cuda
