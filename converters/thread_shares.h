// Independent work divided among threads that live for one call. Nothing waits or spins between
// calls; for calls that last microseconds there is runtime/worker_team.h.
#ifndef KINGLET_CONVERTERS_THREAD_SHARES_H_
#define KINGLET_CONVERTERS_THREAD_SHARES_H_

#include <cstddef>
#include <cstdint>
#include <functional>

namespace kinglet {

// How many threads a conversion uses: as many as can run at a time, at least 1.
size_t MachineThreads();

// Calls work(share) once for every share < threads and returns when all calls have returned. Share
// 0 runs in this thread, each other share in a thread of its own, or in this one if the system has
// no more threads, or no memory for one. If a call throws, RunShares throws the first exception
// when all have ended. REQUIRES: threads >= 1.
void RunShares(size_t threads, const std::function<void(size_t share)>& work);

// Calls work(first, end) once for each of `threads` adjacent ranges that cover [0, count) and are
// nearly equal; ranges are empty where count < threads. Otherwise as RunShares.
// REQUIRES: threads >= 1; count * threads < 2^64.
void RunRanges(uint64_t count, size_t threads,
               const std::function<void(uint64_t first, uint64_t end)>& work);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_THREAD_SHARES_H_
