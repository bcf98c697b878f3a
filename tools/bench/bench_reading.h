// The measurement of `kinglet bench` for a masked model, which reads complete texts.
#ifndef KINGLET_TOOLS_BENCH_BENCH_READING_H_
#define KINGLET_TOOLS_BENCH_BENCH_READING_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "runtime/model.h"
#include "tools/bench/bench_report.h"

namespace kinglet {

struct ReadingSetup {
  // The text, which each lane reads; at most as many ids as the model has positions.
  std::vector<uint32_t> ids;
  size_t lanes = 1, threads = 1;  // lanes read one after the other; threads share a text's work
  uint64_t texts = 1;             // timed texts of each lane
};

// Each lane's session reads the text, once without timing and then `texts` times, interleaved with
// readings in which single nodes are timed. Calls `progress` with the number of rounds done.
// Errors: those of creating and using a session. REQUIRES: a masked model on the host.
Result<BenchResult> MeasureReading(const std::shared_ptr<const Model>& model,
                                   const ReadingSetup& setup,
                                   const std::function<void(uint64_t)>& progress);

}  // namespace kinglet

#endif  // KINGLET_TOOLS_BENCH_BENCH_READING_H_
