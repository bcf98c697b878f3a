// A plan bound to a device: its weights in device memory, and its device nodes. Immutable; shared
// by any number of sessions, each of which has a queue of its own.
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

class Binder;
class WeightStore;

class Program {
 public:
  // KINGLET_UNSUPPORTED names an operation that the device cannot run, and its node;
  // KINGLET_OUT_OF_MEMORY. `release` gets the bytes of the file that are no longer needed.
  static Result<std::shared_ptr<const Program>> Bind(const Plan& plan, const BufferLayout& layout,
                                                     const std::shared_ptr<Device>& device,
                                                     const ReleaseBytes& release);

  const std::shared_ptr<Device>& device() const { return device_; }
  // The device nodes of plan nodes [begin, end).
  NodeList List(NodeRange range) const;
  // Likewise for `lanes` lanes. The layers of a whole context may then be one node, or two for each
  // layer, which leave the buffers between them alone.
  NodeList List(NodeRange range, uint32_t lanes) const;
  // The demand of one run of plan node `node` for these lanes. Returns nullopt if another node does
  // its work.
  std::optional<DeviceDemand> DemandOf(size_t node, std::span<const StreamFrame> lanes) const;
  const Queries& queries() const { return queries_; }

  // The plan for given tokens (bind_text.h).
  struct Text {
    std::shared_ptr<const Program> program;
    Plan plan;
    BufferLayout layout;
    NodeList to_text, to_stream;  // MoveState
  };
  // Null if tokens cannot run together.
  const Text* text() const { return text_.get(); }
  // Of a text's program: the context without the node that stores a pair of the cache, and that
  // node, if there is one.
  NodeList TextContext() const { return ListOf(many_); }
  NodeList TextAppend() const { return ListOf(append_); }
  uint64_t temporary_bytes() const { return temporary_bytes_; }  // of a lane
  uint64_t weight_bytes() const { return weight_bytes_; }

 private:
  explicit Program(std::shared_ptr<Device> device) : device_(std::move(device)) {}

  std::shared_ptr<Device> device_;
  std::vector<DeviceMemory> memory_;
  std::vector<Node> nodes_;
  std::vector<uint32_t>
      firsts_;  // index in nodes_ of plan node i's first; at the end, the size of nodes_
  const Node* on_device_ = nullptr;
  // A context whose layers need few launches.
  struct Context {
    std::vector<Node> nodes;  // may be empty
    const Node* on_device = nullptr;
  };
  static NodeList ListOf(const Context& context) {
    return {context.nodes.data(), static_cast<uint32_t>(context.nodes.size()), context.on_device};
  }
  static Result<Context> ContextOf(std::vector<Node> nodes, WeightStore& weights);
  Status BindNodes(Binder& binder);
  Status BindText(const Plan& plan, const BufferLayout& layout, WeightStore& weights);
  static Result<Context> ContextWith(std::span<const Node> layers, NodeRange of, const Plan& plan,
                                     const std::vector<std::vector<Node>>& bound,
                                     WeightStore& weights);
  NodeRange context_;
  Context few_, many_;  // for few lanes, and for many
  Context append_;      // of a text's program
  Context moves_;       // to a text, and back
  std::unique_ptr<Text> text_;
  Queries queries_;
  uint64_t temporary_bytes_ = 0, weight_bytes_ = 0;
};

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_PROGRAM_H_
