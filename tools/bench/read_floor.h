// The time it takes to read given memory and do nothing with it.
#ifndef KINGLET_TOOLS_BENCH_READ_FLOOR_H_
#define KINGLET_TOOLS_BENCH_READ_FLOOR_H_

#include <cstddef>
#include <span>
#include <vector>

#include "kernels/backend.h"
#include "tools/thread_team.h"

namespace kinglet {

// The ranges divided among `shares` >= 1 readers, as evenly as whole 64-byte lines allow, in order.
std::vector<std::vector<MemoryRange>> DivideRanges(std::span<const MemoryRange> ranges,
                                                   size_t shares);

// The fastest of `passes` >= 1 passes over all of the ranges, in seconds, by all of the team.
double FastestRead(std::span<const MemoryRange> ranges, ThreadTeam& team, size_t passes);

}  // namespace kinglet

#endif  // KINGLET_TOOLS_BENCH_READ_FLOOR_H_
