#include "tools/bench/step_clock.h"

#include <algorithm>
#include <utility>

namespace kinglet {

void StepClock::After(size_t step, std::span<const StreamFrame> lanes) {
  const Time now = std::chrono::steady_clock::now();
  sums_[step].seconds += std::chrono::duration<double>(now - start_).count();
  ++sums_[step].runs;
  if (!recorder_) return;
  recorder_(step, lanes);
  sums_[step].recording_seconds +=
      std::chrono::duration<double>(std::chrono::steady_clock::now() - now).count();
}

StepObservers StepClock::Observers() {
  return {[this](const Step&, std::span<const StreamFrame>) {
            start_ = std::chrono::steady_clock::now();
          },
          [this](const Step& step, std::span<const StreamFrame> lanes) {
            After(static_cast<size_t>(&step - plan_->steps.data()), lanes);
          }};
}

void StepClock::Attach(Session& session) {
  StepObservers observers = Observers();
  session.set_observer(std::move(observers.after), std::move(observers.before));
}

double StepClock::Seconds(size_t i) const {
  const Sum& sum = sums_[i];
  return std::max(0.0, sum.seconds - static_cast<double>(sum.runs) * Cost().within);
}

double StepClock::OverheadSeconds(size_t i) const {
  return static_cast<double>(sums_[i].runs) * Cost().whole + sums_[i].recording_seconds;
}

// Observes an empty step and takes the smallest of a few measurements, because noise only adds.
const ObservationCost& StepClock::Cost() {
  static const ObservationCost cost = [] {
    constexpr int kTries = 20, kRuns = 500;
    Plan plan;
    plan.steps.resize(1);
    ObservationCost best = {1, 1};
    for (int attempt = 0; attempt < kTries; ++attempt) {
      StepClock clock(plan);
      const StepObservers observers = clock.Observers();
      const StreamFrame frame{};
      const Time start = std::chrono::steady_clock::now();
      for (int i = 0; i < kRuns; ++i) {
        observers.before(plan.steps[0], {&frame, 1});
        observers.after(plan.steps[0], {&frame, 1});
      }
      const Time end = std::chrono::steady_clock::now();
      best.whole = std::min(best.whole, std::chrono::duration<double>(end - start).count() / kRuns);
      best.within = std::min(best.within, clock.sums_[0].seconds / kRuns);
    }
    return best;
  }();
  return cost;
}

}  // namespace kinglet
