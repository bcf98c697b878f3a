// Work divided among threads that live for one call.
#ifndef KINGLET_CONVERTERS_THREAD_SHARES_H_
#define KINGLET_CONVERTERS_THREAD_SHARES_H_

#include <cstddef>
#include <cstdint>
#include <functional>

namespace kinglet {

// As many threads as the machine runs at a time, at least 1: for what a conversion computes.
size_t MachineThreads();

// Calls work(share) once for every share < threads and returns when all are done: share 0 in this
// thread, each other in one of its own, or in this one if the system has no more threads. Nothing
// waits or spins between calls. `work` must not throw. REQUIRES: threads >= 1.
void RunShares(size_t threads, const std::function<void(size_t)>& work);

// The part of `count` things that falls to one share of so many threads: adjacent, nearly equal.
// REQUIRES: share < threads; count * threads < 2^64.
struct ShareRange {
  uint64_t begin, end;
};
inline ShareRange ShareOf(uint64_t count, size_t share, size_t threads) {
  return {count * share / threads, count * (share + 1) / threads};
}

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_THREAD_SHARES_H_
