// What the steps of a plan have asked of a device, so that their time can be compared
// with what the device could have done in it.
#ifndef KINGLET_TOOLS_BENCH_STEP_DEMANDS_H_
#define KINGLET_TOOLS_BENCH_STEP_DEMANDS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kernels/backend.h"
#include "kernels/device_peaks.h"
#include "runtime/model.h"

namespace kinglet {

// Of all runs of a step.
struct StepDemand {
  double bytes = 0;          // of the device's memory: weights, and the lanes' own buffers
  double byte_products = 0;  // on its tensor cores

  StepDemand& operator+=(const StepDemand& more) {
    bytes += more.bytes;
    byte_products += more.byte_products;
    return *this;
  }
};

class StepDemands {
 public:
  // The model lies on a device and outlives this.
  explicit StepDemands(const Model& model) : model_(&model), sums_(model.plan().steps.size()) {}

  // One run of step `step` for these lanes: the cost of asking is that of one lane where all are at
  // one position.
  void Add(size_t step, std::span<const StreamFrame> lanes);
  // Nothing if the step has not run, does nothing of its own, or the device does not say.
  const std::optional<StepDemand>& operator[](size_t step) const { return sums_[step]; }

 private:
  const Model* model_;
  std::vector<std::optional<StepDemand>> sums_;  // by step
};

// What share of a peak so much in so many seconds is; nothing if the peak is unknown or there was
// no time.
std::optional<double> FractionOfPeak(double amount, double seconds, double peak_per_second);

}  // namespace kinglet

#endif  // KINGLET_TOOLS_BENCH_STEP_DEMANDS_H_
