// What the steps of a plan demand of a device, for comparing their time with the device's peaks.
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

// Sums over all runs of a step.
struct StepDemand {
  double bytes = 0;          // read or written in device memory: weights and lane buffers
  double byte_products = 0;  // products of bytes on the tensor cores

  StepDemand& operator+=(const StepDemand& more) {
    bytes += more.bytes;
    byte_products += more.byte_products;
    return *this;
  }
};

class StepDemands {
 public:
  // The model must be on a device and outlive this.
  explicit StepDemands(const Model& model) : model_(&model), sums_(model.plan().steps.size()) {}

  // Adds one run of step `step` for these lanes. If all lanes are at the same position, this
  // computes the demand of one lane only and multiplies it.
  void Add(size_t step, std::span<const StreamFrame> lanes);
  // nullopt if the step has not run, does no work of its own, or the device does not report it.
  const std::optional<StepDemand>& operator[](size_t step) const { return sums_[step]; }

 private:
  const Model* model_;
  std::vector<std::optional<StepDemand>> sums_;  // by step
};

// amount / seconds as a fraction of the peak; nullopt if the peak is unknown (0) or the time is 0.
std::optional<double> FractionOfPeak(double amount, double seconds, double peak_per_second);

}  // namespace kinglet

#endif  // KINGLET_TOOLS_BENCH_STEP_DEMANDS_H_
