// Runs the device nodes of a plan's first node on lanes whose memory is copied from the host and
// back.
#ifndef KINGLET_TESTS_KERNELS_CUDA_LANE_RUNS_H_
#define KINGLET_TESTS_KERNELS_CUDA_LANE_RUNS_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cuda/emulated_device.h"
#include "kernels/cuda/program.h"
#include "kernels/ref/ref.h"
#include "tests/support/op_cases.h"

namespace kinglet::cuda {

// A copy of some host memory on the device.
class Mirror {
 public:
  Mirror(const std::shared_ptr<Device>& device, Queue& queue, std::byte* host, uint64_t bytes)
      : queue_(queue), host_(host), bytes_(bytes) {
    memory_ = std::move(DeviceMemory::Allocate(device, bytes)).value();
    EXPECT_TRUE(queue_.Upload(memory_.data(), host_, bytes_).ok());
  }
  std::byte* data() const { return memory_.data(); }
  void Fetch() { EXPECT_TRUE(queue_.Download(host_, memory_.data(), bytes_).ok()); }

 private:
  Queue& queue_;
  std::byte* host_;
  uint64_t bytes_;
  DeviceMemory memory_;
};

// All frames are lanes of one run. Host memory that several frames share gets the last frame's
// result.
inline void RunOnLanes(const Program& program, const BufferLayout& layout,
                       std::span<const StreamFrame> frames) {
  const std::unique_ptr<Queue> queue = std::move(program.device()->CreateQueue()).value();
  std::deque<Mirror> scratch, state, temporary, spellings;
  std::vector<std::byte> nothing(program.temporary_bytes(), std::byte{0xA5});
  std::vector<Lane> lanes;
  for (const StreamFrame& frame : frames) {
    scratch.emplace_back(program.device(), *queue, frame.scratch, layout.scratch_bytes);
    state.emplace_back(program.device(), *queue, frame.state, layout.state_bytes);
    temporary.emplace_back(program.device(), *queue, nothing.data(), nothing.size());
    // Mirrors of no bytes have no address.
    std::string letters(frame.spelling.empty() ? "x" : frame.spelling);
    spellings.emplace_back(program.device(), *queue, reinterpret_cast<std::byte*>(letters.data()),
                           letters.size());
    lanes.push_back({scratch.back().data(), state.back().data(), temporary.back().data(),
                     frame.position, frame.source_length, frame.token, frame.word(),
                     static_cast<uint32_t>(frame.spelling.size()), 0,
                     reinterpret_cast<const uint8_t*>(spellings.back().data())});
  }
  const Mirror of_lanes(program.device(), *queue, reinterpret_cast<std::byte*>(lanes.data()),
                        lanes.size() * sizeof(Lane));
  EXPECT_TRUE(queue
                  ->Run(program.List({0, 1}), reinterpret_cast<const Lane*>(of_lanes.data()),
                        static_cast<uint32_t>(lanes.size()))
                  .ok());
  for (Mirror& memory : scratch) memory.Fetch();
  for (Mirror& memory : state) memory.Fetch();
}

struct TokenAt {
  uint32_t token = 0;
  uint64_t position = 0;
};

// Runs a case `times` times, with a lane for each of `tokens`, in both orders of the emulated
// device. Expects each lane to be as `ref` leaves it when it runs alone.
inline void ExpectLanesSameAsRef(const OpCase& op_case, std::span<const TokenAt> tokens,
                                 uint32_t times = 1) {
  const BufferLayout layout = LayOut(op_case.plan, sizeof(float)).value();
  const auto reference = ref::BindFloat(op_case.plan, layout);
  for (const Order order : {Order::kForward, Order::kBackward}) {
    const auto program = Program::Bind(op_case.plan, layout, EmulatedDevice({3, order}), {});
    ASSERT_TRUE(program.ok()) << op_case.name << ": " << program.status().message();
    std::deque<OpCase> cases;
    std::deque<OpRun> runs, expected;
    std::vector<StreamFrame> frames;
    const auto remember = [&frames](const StreamFrame& frame) { frames.push_back(frame); };
    for (const TokenAt& at : tokens) {
      cases.push_back(op_case);
      cases.back().token = at.token;
      cases.back().position = at.position;
      expected.emplace_back(cases.back(), sizeof(float)).Run(reference->front());
      runs.emplace_back(cases.back(), sizeof(float)).Run({EachFrame(remember)});
    }
    for (uint32_t time = 0; time < times; ++time) {
      if (time > 0) {
        for (OpRun& run : expected) run.RunAgain(reference->front());
      }
      RunOnLanes(**program, layout, frames);
      for (size_t i = 0; i < runs.size(); ++i) {
        EXPECT_EQ(runs[i].Difference(expected[i]), "")
            << op_case.name << ", lane " << i << ", time " << time;
      }
    }
  }
}

}  // namespace kinglet::cuda

#endif  // KINGLET_TESTS_KERNELS_CUDA_LANE_RUNS_H_
