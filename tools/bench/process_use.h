// What the operating system reports about this process.
#ifndef KINGLET_TOOLS_BENCH_PROCESS_USE_H_
#define KINGLET_TOOLS_BENCH_PROCESS_USE_H_

#include <cstdint>
#include <optional>

namespace kinglet {

// Peak resident memory in bytes, from Linux.
std::optional<uint64_t> PeakResidentBytes();

// How often the system has preempted a thread of the process.
long Interruptions();

}  // namespace kinglet

#endif  // KINGLET_TOOLS_BENCH_PROCESS_USE_H_
