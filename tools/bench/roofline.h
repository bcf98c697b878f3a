// The roofline: the time to read given memory without computing anything.
#ifndef KINGLET_TOOLS_BENCH_ROOFLINE_H_
#define KINGLET_TOOLS_BENCH_ROOFLINE_H_

#include <cstddef>
#include <span>
#include <vector>

#include "kernels/backend.h"
#include "tools/thread_team.h"

namespace kinglet {

// Divides the ranges in order among `shares` >= 1 readers, as evenly as whole 64-byte lines allow.
std::vector<std::vector<MemoryRange>> DivideRanges(std::span<const MemoryRange> ranges,
                                                   size_t shares);

// Seconds of the fastest of `passes` >= 1 passes in which the whole team reads all ranges.
double FastestRead(std::span<const MemoryRange> ranges, ThreadTeam& team, size_t passes);

}  // namespace kinglet

#endif  // KINGLET_TOOLS_BENCH_ROOFLINE_H_
