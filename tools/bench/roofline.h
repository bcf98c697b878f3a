// The roofline: the time to read given memory without computing anything.
#ifndef KINGLET_TOOLS_BENCH_ROOFLINE_H_
#define KINGLET_TOOLS_BENCH_ROOFLINE_H_

#include <cstddef>
#include <span>
#include <vector>

#include "kernels/backend.h"
#include "tools/thread_team.h"

namespace kinglet {

// Divides the ranges in order among `readers` >= 1 readers, as evenly as complete 64-byte lines
// allow.
std::vector<std::vector<MemoryRange>> DivideRanges(std::span<const MemoryRange> ranges,
                                                   size_t readers);

// Seconds of the fastest of `repeats` >= 1 reads of all ranges by the complete team.
double FastestRead(std::span<const MemoryRange> ranges, ThreadTeam& team, size_t repeats);

}  // namespace kinglet

#endif  // KINGLET_TOOLS_BENCH_ROOFLINE_H_
