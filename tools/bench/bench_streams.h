// The streams of a measurement. Lanes are divided among threads, and all lanes step together.
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
#include "tools/bench/node_clock.h"
#include "tools/bench/node_demands.h"
#include "tools/thread_team.h"

namespace kinglet {

// The query after every token.
enum class BenchMode : uint8_t {
  kFull,   // log p of every word
  kScore,  // log p of the token that follows
  kTopK,   // the most probable words
  kRead,   // masked models read complete texts without queries
  kText,   // a given text, and the log-probability of each of its tokens
};
std::string_view BenchModeName(BenchMode mode);

struct BenchQuery {
  BenchMode mode = BenchMode::kFull;
  uint32_t top = 10;
  bool no_skip = false;  // compute every cluster and the cache before the query
};

// The work of one lane in one step.
struct LaneStep {
  TokenPath path;
  OperationTally arithmetic;  // of the distribution outside the plan's nodes
};

class BenchStreams {
 public:
  // One session per thread of the team, each with `session_threads` threads. The team has at most
  // as many threads as there are lanes. `team` and `ids` outlive the streams.
  static Result<BenchStreams> Create(const std::shared_ptr<const Model>& model, size_t lanes,
                                     const LaneIds& ids, ThreadTeam& team,
                                     size_t session_threads = 1);

  // Feeds the next `tokens` tokens of every lane without queries.
  Status Feed(uint64_t tokens);
  // Restarts every lane with this source. Returns the wall time in seconds.
  Result<double> Encode(std::span<const uint32_t> source);
  // One step and one query for every lane. Returns the wall time in seconds.
  Result<double> Step(const BenchQuery& query);
  // Total work of the device so far.
  DeviceWork device_work() const;
  // The work of each lane in the last step.
  const std::vector<LaneStep>& last_steps() const { return last_steps_; }

  // Saves and restores the states of all lanes. REQUIRES: the states are of streams of the same
  // model and number of lanes.
  Result<std::vector<State>> Save();
  Status Restore(const std::vector<State>& states);

  // Switches the timing of single nodes of the plan on or off.
  void Observe(bool observe);
  // Number of lanes of each session, in order.
  std::vector<size_t> LanesOfSessions() const;
  // Seconds of all observed runs, summed over lanes and threads: of node i of the plan, and of the
  // queries without their nodes.
  double NodeSeconds(size_t i) const;
  double QuerySeconds() const;
  // Demands of the observed runs of node i on a device; nullopt on the host, and where NodeDemands
  // has no value.
  std::optional<NodeDemand> DemandOf(size_t i) const;

  // The answer buffers of a full-distribution query, one per thread. Empty for other queries.
  std::vector<MemoryRange> Answers(const BenchQuery& query) const;

 private:
  // The lanes of one thread.
  struct Partition {
    std::unique_ptr<Session> session;
    std::vector<uint32_t> lanes, ids;  // lane indices 0, 1, ...; the id fed to each lane
    std::vector<CachedRows> rows;      // of each lane
    size_t first = 0;                  // index of the first lane among all lanes
    std::vector<float> floats;         // answers, in the backend's real type
    std::vector<double> doubles;
    std::vector<uint32_t> best;  // words that a device ranked, and their log-probabilities
    std::vector<double> of_best;
    std::unique_ptr<NodeDemands> demands;  // null on the host
    std::unique_ptr<NodeClock> clock;
    double query_seconds = 0;  // observed queries, including their nodes
    Status status;
  };

  BenchStreams(const Model& model, const LaneIds& ids, ThreadTeam& team)
      : model_(&model), ids_(&ids), team_(&team) {}
  Status StepPartition(Partition& partition) const;
  Status QueryPartition(Partition& partition, const BenchQuery& query);
  // Whether the device ranks the words of the query itself, for all lanes at once.
  static bool RanksOnDevice(const Partition& partition, const BenchQuery& query);
  Status QueryGroup(Partition& partition, std::span<const uint32_t> lanes, const BenchQuery& query);
  static Status WriteAll(Partition& partition, uint32_t lane);
  Status RunTogether(const std::function<Status(Partition&)>& work);

  const Model* model_;  // the model of all sessions
  const LaneIds* ids_;
  ThreadTeam* team_;
  std::vector<Partition> partitions_;
  uint64_t position_ = 0;       // of every lane
  uint64_t source_length_ = 0;  // of every lane's source
  bool observed_ = false;
  std::vector<LaneStep> last_steps_;  // by lane
};

}  // namespace kinglet

#endif  // KINGLET_TOOLS_BENCH_BENCH_STREAMS_H_
