// Times the steps of a plan one by one, through a session's observers.
#ifndef KINGLET_TOOLS_BENCH_STEP_CLOCK_H_
#define KINGLET_TOOLS_BENCH_STEP_CLOCK_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "kernels/plan.h"
#include "runtime/session.h"

namespace kinglet {

// What one look at a step costs, in seconds: how much of it the step's own time includes, and all
// of it.
struct ObservationCost {
  double within = 0, whole = 0;
};

class StepClock {
 public:
  // Called after each run of a step, with its lanes, once its time is taken; what it takes itself
  // is part of looking at the step. May be empty.
  using Recorder = std::function<void(size_t step, std::span<const StreamFrame> lanes)>;
  explicit StepClock(const Plan& plan, Recorder recorder = {})
      : plan_(&plan), recorder_(std::move(recorder)), sums_(plan.steps.size()) {}
  StepClock(const StepClock&) = delete;
  StepClock& operator=(const StepClock&) = delete;

  // The clock must outlive the session, or be detached.
  void Attach(Session& session);
  static void Detach(Session& session) { session.set_observer({}); }

  // All runs of step i, in seconds, without what looking at them costs; and what that is.
  double Seconds(size_t i) const;
  double OverheadSeconds(size_t i) const;

 private:
  using Time = std::chrono::steady_clock::time_point;
  struct Sum {
    double seconds = 0;
    uint64_t runs = 0;
    double recording_seconds = 0;
  };
  StepObservers Observers();
  void After(size_t step, std::span<const StreamFrame> lanes);
  // Measured once.
  static const ObservationCost& Cost();

  const Plan* plan_;
  Recorder recorder_;
  Time start_;
  std::vector<Sum> sums_;  // by step
};

}  // namespace kinglet

#endif  // KINGLET_TOOLS_BENCH_STEP_CLOCK_H_
