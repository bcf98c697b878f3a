// Streams whose memory stays on an emulated device from token to token, compared with the same
// streams run by `ref`.
#ifndef KINGLET_TESTS_KERNELS_CUDA_LANES_H_
#define KINGLET_TESTS_KERNELS_CUDA_LANES_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cuda/emulated_device.h"
#include "kernels/cuda/program.h"
#include "kernels/nine_bit_row.h"
#include "kernels/ref/ref.h"
#include "tests/support/model_builder.h"
#include "tests/support/op_cases.h"

namespace kinglet::cuda {

// The position of a stream, and its next token.
struct StreamPlace {
  uint64_t position = 0, source_length = 0;
  uint32_t token = 0;
};

class Lanes {
 public:
  // `count` streams of the case's plan, which may have several nodes. Memory begins as zeros,
  // whatever the case's contents are.
  Lanes(const OpCase& op_case, size_t count, const Emulation& emulation = {})
      : op_case_(op_case),
        device_(EmulatedDevice(emulation)),
        layout_(LayOut(op_case.plan, sizeof(float)).value()),
        program_(Program::Bind(op_case.plan, layout_, device_, {}).value()),
        queue_(std::move(device_->CreateQueue()).value()),
        reference_(ref::BindFloat(op_case.plan, layout_).value()),
        streams_(count) {
    for (Stream& stream : streams_) {
      stream.expected_scratch.resize(layout_.scratch_bytes / sizeof(Line));
      stream.expected_state.resize(layout_.state_bytes / sizeof(Line));
      stream.scratch = Allocate(layout_.scratch_bytes);
      stream.state = Allocate(layout_.state_bytes);
      stream.temporary = Allocate(program_->temporary_bytes());
    }
  }

  // Fills a buffer of every stream with random elements: codes over their entire range, floats
  // within [-4, 4].
  void Randomise(BufferId id) {
    const BufferSpec& buffer = op_case_.plan.buffer(id);
    for (Stream& stream : streams_) {
      const Slot& slot = layout_[id];
      std::byte* const host = Bytes(slot.state ? stream.expected_state : stream.expected_scratch);
      if (buffer.element == Element::kReal) {
        auto* const floats = reinterpret_cast<float*>(host + slot.offset);
        for (size_t i = 0; i < slot.count; ++i) {
          floats[i] = (static_cast<float>(random_.Below(2001)) - 1000.0f) / 250.0f;
        }
      } else {
        const auto largest = static_cast<uint32_t>(LargestCode(*buffer.quantiser));
        const auto code = [&] {
          return static_cast<int16_t>(static_cast<int32_t>(random_.Below(2 * largest + 1)) -
                                      static_cast<int32_t>(largest));
        };
        if (buffer.element == Element::kCode9) {
          const NineBitRow row{buffer.row};
          std::vector<int16_t> codes(row.count);
          auto* to = reinterpret_cast<uint8_t*>(host + slot.offset);
          for (size_t first = 0; first < slot.count; first += row.count, to += row.Bytes()) {
            std::generate(codes.begin(), codes.end(), code);
            row.Store([&](uint64_t i) { return codes[i]; }, to);
          }
        } else {
          auto* const codes = reinterpret_cast<int16_t*>(host + slot.offset);
          std::generate_n(codes, slot.count, code);
        }
      }
      const size_t bytes = BytesOf(buffer, slot.count, sizeof(float));
      const DeviceMemory& memory = slot.state ? stream.state : stream.scratch;
      EXPECT_TRUE(queue_->Upload(memory.data() + slot.offset, host + slot.offset, bytes).ok());
    }
  }

  // Runs the plan on all streams, and compares all of their memory with that of `ref`.
  void RunAt(const std::vector<StreamPlace>& places) {
    std::vector<Lane> lanes;
    const std::string& letters = op_case_.spelling;
    const DeviceMemory of_letters = Allocate(letters.size() + 1);
    EXPECT_TRUE(queue_
                    ->Upload(of_letters.data(), reinterpret_cast<const std::byte*>(letters.data()),
                             letters.size())
                    .ok());
    for (size_t i = 0; i < streams_.size(); ++i) {
      Stream& stream = streams_[i];
      const StreamPlace& place = places[i];
      std::vector<std::byte> rubbish(program_->temporary_bytes(), std::byte{0xA5});
      EXPECT_TRUE(queue_->Upload(stream.temporary.data(), rubbish.data(), rubbish.size()).ok());
      lanes.push_back({stream.scratch.data(), stream.state.data(), stream.temporary.data(),
                       place.position, place.source_length, place.token,
                       op_case_.spelt == 0 ? place.token : op_case_.spelt,
                       static_cast<uint32_t>(letters.size()), 0,
                       reinterpret_cast<const uint8_t*>(of_letters.data())});
      StreamFrame frame{Bytes(stream.expected_scratch), Bytes(stream.expected_state),
                        place.position, place.token, place.source_length};
      frame.spelling = letters;
      frame.spelt = op_case_.spelt;
      for (const Kernel& kernel : reference_) kernel.Run({&frame, 1});
    }
    const DeviceMemory of_lanes = Allocate(lanes.size() * sizeof(Lane));
    EXPECT_TRUE(queue_->Upload(of_lanes.data(), lanes.data(), lanes.size() * sizeof(Lane)).ok());
    const NodeList list = program_->List({0, op_case_.plan.nodes.size()});
    EXPECT_TRUE(queue_
                    ->Run(list, reinterpret_cast<const Lane*>(of_lanes.data()),
                          static_cast<uint32_t>(lanes.size()))
                    .ok());
    for (size_t i = 0; i < streams_.size(); ++i) {
      const std::string where =
          "stream " + std::to_string(i) + " at " + std::to_string(places[i].position);
      Compare(streams_[i].scratch, streams_[i].expected_scratch, where + ", scratch");
      Compare(streams_[i].state, streams_[i].expected_state, where + ", state");
    }
  }

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  struct Stream {
    std::vector<Line> expected_scratch, expected_state;
    DeviceMemory scratch, state, temporary;
  };
  static std::byte* Bytes(std::vector<Line>& lines) {
    return reinterpret_cast<std::byte*>(lines.data());
  }
  DeviceMemory Allocate(uint64_t bytes) {
    DeviceMemory memory = std::move(DeviceMemory::Allocate(device_, bytes)).value();
    EXPECT_TRUE(queue_->Zero(memory.data(), bytes).ok());
    return memory;
  }
  void Compare(const DeviceMemory& memory, const std::vector<Line>& expected,
               const std::string& where) {
    std::vector<Line> found(expected.size());
    if (found.empty()) return;
    const size_t bytes = found.size() * sizeof(Line);
    EXPECT_TRUE(queue_->Download(found.data(), memory.data(), bytes).ok());
    EXPECT_EQ(std::memcmp(found.data(), expected.data(), bytes), 0) << op_case_.name << where;
  }

  const OpCase& op_case_;
  std::shared_ptr<Device> device_;
  BufferLayout layout_;
  std::shared_ptr<const Program> program_;
  std::unique_ptr<Queue> queue_;
  std::vector<Kernel> reference_;
  std::vector<Stream> streams_;
  TestRandom random_{1};
};

}  // namespace kinglet::cuda

#endif  // KINGLET_TESTS_KERNELS_CUDA_LANES_H_
