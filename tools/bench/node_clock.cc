#include "tools/bench/node_clock.h"

#include <algorithm>
#include <utility>

namespace kinglet {

void NodeClock::After(size_t node, std::span<const StreamFrame> lanes) {
  const Time now = std::chrono::steady_clock::now();
  sums_[node].seconds += std::chrono::duration<double>(now - start_).count();
  ++sums_[node].runs;
  if (!recorder_) return;
  recorder_(node, lanes);
  sums_[node].recording_seconds +=
      std::chrono::duration<double>(std::chrono::steady_clock::now() - now).count();
}

NodeObservers NodeClock::Observers() {
  return {[this](const Node&, std::span<const StreamFrame>) {
            start_ = std::chrono::steady_clock::now();
          },
          [this](const Node& node, std::span<const StreamFrame> lanes) {
            After(static_cast<size_t>(&node - plan_->nodes.data()), lanes);
          }};
}

void NodeClock::Attach(Session& session) {
  NodeObservers observers = Observers();
  session.set_observer(std::move(observers.after), std::move(observers.before));
}

double NodeClock::Seconds(size_t i) const {
  const Sum& sum = sums_[i];
  return std::max(0.0, sum.seconds - static_cast<double>(sum.runs) * Cost().within);
}

double NodeClock::OverheadSeconds(size_t i) const {
  return static_cast<double>(sums_[i].runs) * Cost().whole + sums_[i].recording_seconds;
}

// Observes an empty node and takes the smallest of a few measurements, because noise only adds.
const ObservationCost& NodeClock::Cost() {
  static const ObservationCost cost = [] {
    constexpr int kTries = 20, kRuns = 500;
    Plan plan;
    plan.nodes.resize(1);
    ObservationCost best = {1, 1};
    for (int attempt = 0; attempt < kTries; ++attempt) {
      NodeClock clock(plan);
      const NodeObservers observers = clock.Observers();
      const StreamFrame frame{};
      const Time start = std::chrono::steady_clock::now();
      for (int i = 0; i < kRuns; ++i) {
        observers.before(plan.nodes[0], {&frame, 1});
        observers.after(plan.nodes[0], {&frame, 1});
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
