// The measuring itself: modes in turn, in one process, over the same tokens.
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
  // Lanes are divided among the threads; a lane that has several divides its steps.
  size_t lanes = 1, threads = 1;
  BenchSchedule schedule;
  // Of a model with an encoder: what stands before the target of each round. Otherwise empty.
  std::vector<uint32_t> source = {};
};

// Every mode has streams of its own, warmed up alike. In each round each mode in turn goes through
// the round's tokens twice: once with nothing but the wall time of each step taken, once with the
// steps of the plan observed. A round of a translation encodes the source, then goes through the
// target from its start. `progress` is called with the rounds done. Errors: as creating
// sessions, stepping and asking.
Result<std::vector<BenchResult>> Measure(const std::shared_ptr<const Model>& model,
                                         const BenchSetup& setup, const LaneIds& ids,
                                         const std::function<void(uint64_t)>& progress);

}  // namespace kinglet

#endif  // KINGLET_TOOLS_BENCH_BENCH_MEASURE_H_
