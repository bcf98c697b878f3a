#include "tools/bench/node_demands.h"

#include "kernels/device_program.h"
#include "runtime/accounting/trace.h"
#include "runtime/accounting/traffic.h"

namespace kinglet {

void NodeDemands::Add(size_t node, std::span<const StreamFrame> lanes) {
  const std::optional<DeviceDemand> demand = model_->device()->DemandOf(node, lanes);
  if (!demand) return;
  NodeDemand sum = {static_cast<double>(demand->weight_bytes),
                    static_cast<double>(demand->byte_products)};
  uint64_t own = 0;
  for (size_t i = 0; i < lanes.size(); ++i) {
    const StreamFrame& lane = lanes[i];
    if (i == 0 || lane.position != lanes[i - 1].position ||
        lane.source_length != lanes[i - 1].source_length) {
      TokenPath path;
      path.position = lane.position;
      path.source_length = lane.source_length;
      path.row_is_cached = true;  // the least work of a DeFINE unit
      own = OwnBytes(model_->plan(), model_->layout(), model_->backend().real_bytes, node, path);
    }
    sum.bytes += static_cast<double>(own);
  }
  if (!sums_[node]) sums_[node] = NodeDemand();
  *sums_[node] += sum;
}

std::optional<double> FractionOfPeak(double amount, double seconds, double peak_per_second) {
  if (!(seconds > 0) || !(peak_per_second > 0)) return std::nullopt;
  return amount / (seconds * peak_per_second);
}

}  // namespace kinglet
