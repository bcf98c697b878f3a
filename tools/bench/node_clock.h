// Times the nodes of a plan one by one, through a session's observers.
#ifndef KINGLET_TOOLS_BENCH_NODE_CLOCK_H_
#define KINGLET_TOOLS_BENCH_NODE_CLOCK_H_

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

// Overhead of observing one node, in seconds: the part that the measured node time includes, and
// all of it.
struct ObservationCost {
  double within = 0, whole = 0;
};

class NodeClock {
 public:
  // Called with the lanes after each run of a node, after its time was taken. The recorder's own
  // time counts as overhead. May be empty.
  using Recorder = std::function<void(size_t node, std::span<const StreamFrame> lanes)>;
  explicit NodeClock(const Plan& plan, Recorder recorder = {})
      : plan_(&plan), recorder_(std::move(recorder)), sums_(plan.nodes.size()) {}
  NodeClock(const NodeClock&) = delete;
  NodeClock& operator=(const NodeClock&) = delete;

  // The clock must outlive the session, or be detached.
  void Attach(Session& session);
  static void Detach(Session& session) { session.set_observer({}); }

  // Seconds of all runs of node i without the overhead, and the overhead.
  double Seconds(size_t i) const;
  double OverheadSeconds(size_t i) const;

 private:
  using Time = std::chrono::steady_clock::time_point;
  struct Sum {
    double seconds = 0;
    uint64_t runs = 0;
    double recording_seconds = 0;
  };
  NodeObservers Observers();
  void After(size_t node, std::span<const StreamFrame> lanes);
  // Measured at the first call.
  static const ObservationCost& Cost();

  const Plan* plan_;
  Recorder recorder_;
  Time start_;
  std::vector<Sum> sums_;  // by node
};

}  // namespace kinglet

#endif  // KINGLET_TOOLS_BENCH_NODE_CLOCK_H_
