// Runs the measurement of `kinglet bench`: all modes alternate, in one process, over the same
// tokens.
#ifndef KINGLET_TOOLS_BENCH_BENCH_MEASURE_H_
#define KINGLET_TOOLS_BENCH_BENCH_MEASURE_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "runtime/model.h"
#include "tools/bench/bench_input.h"
#include "tools/bench/bench_report.h"
#include "tools/bench/bench_streams.h"

namespace kinglet {

struct BenchSetup {
  std::vector<BenchQuery> queries;  // one for each mode; not empty
  // Lanes are divided among the threads. With more threads than lanes, several threads share the
  // nodes of a lane.
  size_t lanes = 1, threads = 1;
  BenchSchedule schedule;
  // For a model with an encoder: the source ids of every translation. Otherwise empty.
  std::vector<uint32_t> source = {};
};

// Every mode has its own streams, which are all warmed up in the same way. In each round, each mode
// runs the round's tokens twice: once to measure only the wall time of each step, and once to
// measure the single nodes of the plan. A round of a translation encodes the source and then feeds
// the target from its start. Calls `progress` with the number of rounds done. Errors: those of
// creating sessions, of steps and of queries.
Result<std::vector<BenchResult>> Measure(const std::shared_ptr<const Model>& model,
                                         const BenchSetup& setup, const LaneIds& ids,
                                         const std::function<void(uint64_t)>& progress);

}  // namespace kinglet

#endif  // KINGLET_TOOLS_BENCH_BENCH_MEASURE_H_
