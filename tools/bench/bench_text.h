// The measurement of `kinglet bench --mode text`: a given text, each token of which is scored.
#ifndef KINGLET_TOOLS_BENCH_BENCH_TEXT_H_
#define KINGLET_TOOLS_BENCH_BENCH_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "runtime/model.h"
#include "tools/bench/bench_input.h"
#include "tools/bench/bench_report.h"

namespace kinglet {

struct TextSetup {
  std::vector<uint32_t> ids;  // schedule.Ids() of them
  BenchSchedule schedule;
  size_t threads = 1;
  bool no_skip = false;  // computes every cluster for each token
};

// One stream reads the text, a timed part of schedule.timed tokens in each round by one call of
// Session::StepMany, and once more while single nodes are timed. Calls `progress` with the number
// of rounds done. Errors: those of creating and using a session. REQUIRES: a language model on the
// host, without an encoder.
Result<BenchResult> MeasureText(const std::shared_ptr<const Model>& model, const TextSetup& setup,
                                const std::function<void(uint64_t)>& progress);

}  // namespace kinglet

#endif  // KINGLET_TOOLS_BENCH_BENCH_TEXT_H_
