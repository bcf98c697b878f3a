// The streams that a measurement feeds: lanes divided among threads, all stepping together.
#ifndef KINGLET_TOOLS_BENCH_BENCH_STREAMS_H_
#define KINGLET_TOOLS_BENCH_BENCH_STREAMS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/accounting/meter.h"
#include "runtime/cached_rows.h"
#include "runtime/model.h"
#include "runtime/session.h"
#include "tools/bench/bench_input.h"
#include "tools/bench/step_clock.h"
#include "tools/bench/step_demands.h"
#include "tools/thread_team.h"

namespace kinglet {

// What is asked after every token.
enum class BenchMode : uint8_t {
  kFull,   // log p of every word
  kScore,  // log p of the token that follows
  kTopK,   // the most probable words
};
std::string_view BenchModeName(BenchMode mode);

struct BenchQuery {
  BenchMode mode = BenchMode::kFull;
  uint32_t top = 10;
  bool no_skip = false;  // compute every cluster and the cache first
};

// What one lane did in one step.
struct LaneStep {
  TokenPath path;
  OperationTally arithmetic;  // the distribution's own
};

class BenchStreams {
 public:
  // The team has at most as many threads as there are lanes, and the session of each
  // `session_threads`. `team` and `ids` outlive the streams.
  static Result<BenchStreams> Create(const std::shared_ptr<const Model>& model, size_t lanes,
                                     const LaneIds& ids, ThreadTeam& team,
                                     size_t session_threads = 1);

  // Feeds the next `tokens` tokens of every lane and asks nothing.
  Status Feed(uint64_t tokens);
  // Begins every lane anew behind the source. Returns the wall time in seconds.
  Result<double> Encode(std::span<const uint32_t> source);
  // One step of all lanes, and the query about each. Returns its wall time in seconds.
  Result<double> Step(const BenchQuery& query);
  // What a device has been asked to do by now.
  DeviceWork device_work() const;
  // What each lane did in the last step.
  const std::vector<LaneStep>& last_steps() const { return last_steps_; }

  // Where all lanes are, and back there. REQUIRES: the states are of streams of the same model and
  // number of lanes.
  Result<std::vector<State>> Save();
  Status Restore(const std::vector<State>& states);

  // From now on, or no longer, the steps of the plan are timed one by one.
  void Observe(bool observe);
  // How many lanes each session has, in order.
  std::vector<size_t> LanesOfSessions() const;
  // Of all observed steps, added up over lanes and threads, in seconds: step i of the plan, and
  // what the queries take besides their steps.
  double StepSeconds(size_t i) const;
  double QuerySeconds() const;
  // What the observed runs of step i asked of a device; nothing on the host, and where StepDemands
  // has nothing.
  std::optional<StepDemand> DemandOf(size_t i) const;

  // Where answers are written, one place for each thread: the full distribution. Otherwise empty.
  std::vector<MemoryRange> Answers(const BenchQuery& query) const;

 private:
  // The lanes of one thread.
  struct Share {
    std::unique_ptr<Session> session;
    std::vector<uint32_t> lanes, ids;  // 0, 1, ...; what is fed to each
    std::vector<CachedRows> rows;      // of each lane
    size_t first = 0;                  // the first one's number among all lanes
    std::vector<float> floats;         // answers, in the backend's real type
    std::vector<double> doubles;
    std::unique_ptr<StepDemands> demands;  // null on the host
    std::unique_ptr<StepClock> clock;
    double query_seconds = 0;  // while observed: what the queries took, steps and all
    Status status;
  };

  BenchStreams(const Model& model, const LaneIds& ids, ThreadTeam& team)
      : model_(&model), ids_(&ids), team_(&team) {}
  Status StepShare(Share& share) const;
  Status AskShare(Share& share, const BenchQuery& query);
  // Of lanes that are asked together.
  static bool RanksOnDevice(const Share& share, const BenchQuery& query);
  Status AskGroup(Share& share, std::span<const uint32_t> lanes, const BenchQuery& query);
  static Status WriteAll(Share& share, uint32_t lane);
  Status RunTogether(const std::function<Status(Share&)>& work);

  const Model* model_;  // the sessions'
  const LaneIds* ids_;
  ThreadTeam* team_;
  std::vector<Share> shares_;
  uint64_t position_ = 0;       // of every lane
  uint64_t source_length_ = 0;  // of every lane's source
  bool observed_ = false;
  std::vector<LaneStep> last_steps_;  // by lane
};

}  // namespace kinglet

#endif  // KINGLET_TOOLS_BENCH_BENCH_STREAMS_H_
