// What the nodes of a plan demand of a device, for comparing their time with the device's peaks.
#ifndef KINGLET_TOOLS_BENCH_NODE_DEMANDS_H_
#define KINGLET_TOOLS_BENCH_NODE_DEMANDS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kernels/backend.h"
#include "kernels/device_peaks.h"
#include "runtime/model.h"

namespace kinglet {

// Sums over all runs of a node.
struct NodeDemand {
  double bytes = 0;          // read or written in device memory: weights and lane buffers
  double byte_products = 0;  // products of bytes on the tensor cores

  NodeDemand& operator+=(const NodeDemand& more) {
    bytes += more.bytes;
    byte_products += more.byte_products;
    return *this;
  }
};

class NodeDemands {
 public:
  // The model must be on a device and outlive the object.
  explicit NodeDemands(const Model& model) : model_(&model), sums_(model.plan().nodes.size()) {}

  // Adds one run of node `node` for these lanes. If all lanes are at the same position, only the
  // demand of one lane is computed, and multiplied.
  void Add(size_t node, std::span<const StreamFrame> lanes);
  // nullopt if the node has not run, does no work of its own, or the device does not report its
  // work.
  const std::optional<NodeDemand>& operator[](size_t node) const { return sums_[node]; }

 private:
  const Model* model_;
  std::vector<std::optional<NodeDemand>> sums_;  // by node
};

// amount / seconds as a fraction of the peak; nullopt if the peak is unknown (0) or the time is 0.
std::optional<double> FractionOfPeak(double amount, double seconds, double peak_per_second);

}  // namespace kinglet

#endif  // KINGLET_TOOLS_BENCH_NODE_DEMANDS_H_
