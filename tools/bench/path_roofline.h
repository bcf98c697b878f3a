// The time to read the memory of one token's path, for measurements in which tokens share the
// reads.
#ifndef KINGLET_TOOLS_BENCH_PATH_ROOFLINE_H_
#define KINGLET_TOOLS_BENCH_PATH_ROOFLINE_H_

#include <cstddef>
#include <optional>

#include "runtime/accounting/trace.h"
#include "runtime/accounting/traffic.h"
#include "runtime/model.h"
#include "tools/bench/bench_report.h"

namespace kinglet {

// Sets the result's roofline to the time in which `threads` threads read what the nodes of the path
// and its query touch, of which weights are nearly all: tokens that the network reads together
// cannot take less time than one read of these bytes. Sets the bytes of result.nodes, the plan's
// nodes. KINGLET_OUT_OF_MEMORY.
Status MeasurePathRoofline(const Model& model, const TokenPath& path,
                           const std::optional<QueryTokens>& query, size_t threads,
                           BenchResult& result);

}  // namespace kinglet

#endif  // KINGLET_TOOLS_BENCH_PATH_ROOFLINE_H_
