// Independent work divided among threads that live for one call. No thread waits or spins between
// calls. runtime/worker_team.h is for calls that last microseconds.
#ifndef KINGLET_CONVERTERS_THREAD_SHARES_H_
#define KINGLET_CONVERTERS_THREAD_SHARES_H_

#include <cstddef>
#include <cstdint>
#include <functional>

namespace kinglet {

// How many threads a conversion uses: the number of usable processors, at least 1.
size_t MachineThreads();

// Calls work(share) once for every share < threads and returns when all calls have returned. Share
// 0 runs in this thread, each other share in a thread of its own, or in this one if the system has
// no more threads, or no memory for one. If a call throws, RunShares throws the first exception
// after all calls have ended. REQUIRES: threads >= 1.
void RunShares(size_t threads, const std::function<void(size_t share)>& work);

// Calls work(first, end) once for each of `threads` adjacent ranges that cover [0, count) and are
// nearly equal; ranges are empty where count < threads. Otherwise as RunShares.
// REQUIRES: threads >= 1; count * threads < 2^64.
void RunRanges(uint64_t count, size_t threads,
               const std::function<void(uint64_t first, uint64_t end)>& work);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_THREAD_SHARES_H_
