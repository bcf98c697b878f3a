// One operation of the reference backends, on numbers that a test gives it.
#ifndef KINGLET_TESTS_KERNELS_REF_ONE_NODE_H_
#define KINGLET_TESTS_KERNELS_REF_ONE_NODE_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernels/ref/ref.h"

namespace kinglet::ref {

// A plan of one node over float32 tensors, bound for T and run on memory of its own.
template <class T>
class OneNode {
 public:
  WeightId Tensor(Shape shape, std::vector<float> values) {
    storage_.push_back(std::move(values));
    views_.push_back({"t" + std::to_string(views_.size()), std::move(shape),
                      DenseView{FloatType::kF32, std::as_bytes(std::span(storage_.back()))},
                      std::nullopt});
    return static_cast<WeightId>(views_.size() - 1);
  }
  BufferId Floats(std::vector<T> values, bool state = false) {
    const BufferId id = Buffer({"floats", Element::kReal, values.size(), state});
    initial_.push_back({id, std::vector<std::byte>(values.size() * sizeof(T))});
    std::memcpy(initial_.back().bytes.data(), values.data(), values.size() * sizeof(T));
    return id;
  }
  BufferId Zeros(uint64_t count, bool state = false) {
    return Floats(std::vector<T>(count), state);
  }
  BufferId Codes(uint64_t count, ActivationQuantiser quantiser, bool state = false) {
    return Buffer({"codes", Element::kCode16, count, state, quantiser});
  }
  BufferId Tokens(uint64_t count) { return Buffer({"tokens", Element::kUint32, count, true}); }

  void Bind(Op op) {
    plan_.weights = views_;
    plan_.nodes = {{"node", std::move(op)}};
    layout_ = *LayOut(plan_, sizeof(T));
    scratch_.resize(layout_.scratch_bytes / 8 + 8);
    state_.resize(layout_.state_bytes / 8 + 8);
    for (const Initial& initial : initial_) {
      std::memcpy(layout_[initial.id].template At<std::byte>(FrameAt(0, 0)), initial.bytes.data(),
                  initial.bytes.size());
    }
    WeightStore store(plan_);
    kernel_ = BindNode<T>(plan_.nodes[0], plan_, layout_, store);
  }
  void Run(uint64_t position = 0, uint32_t token = 0, uint64_t source_length = 0) {
    StreamFrame frame = FrameAt(position, token);
    frame.source_length = source_length;
    kernel_.Run({&frame, 1});
  }
  template <class Element>
  Element* Values(BufferId id) {
    return layout_[id].template At<Element>(FrameAt(0, 0));
  }

 private:
  struct Initial {
    BufferId id;
    std::vector<std::byte> bytes;
  };
  BufferId Buffer(BufferSpec spec) {
    plan_.buffers.push_back(std::move(spec));
    return static_cast<BufferId>(plan_.buffers.size() - 1);
  }
  StreamFrame FrameAt(uint64_t position, uint32_t token) {
    return {reinterpret_cast<std::byte*>(scratch_.data()),
            reinterpret_cast<std::byte*>(state_.data()), position, token};
  }

  Plan plan_;
  BufferLayout layout_;
  std::deque<std::vector<float>> storage_;
  std::vector<TensorView> views_;
  std::vector<Initial> initial_;
  std::vector<uint64_t> scratch_, state_;
  Kernel kernel_;
};

}  // namespace kinglet::ref

#endif  // KINGLET_TESTS_KERNELS_REF_ONE_NODE_H_
