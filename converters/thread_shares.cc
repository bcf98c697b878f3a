#include "converters/thread_shares.h"

#include <atomic>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

#include "runtime/worker_team.h"

namespace kinglet {

size_t MachineThreads() { return UsableProcessors(); }

void RunShares(size_t threads, const std::function<void(size_t)>& work) {
  std::atomic<bool> out_of_memory = false;
  const auto run = [&](size_t share) {
    try {
      work(share);
    } catch (const std::bad_alloc&) {
      out_of_memory = true;
    }
  };
  std::vector<std::thread> workers;
  workers.reserve(threads - 1);
  for (size_t share = 1; share < threads; ++share) {
    try {
      workers.emplace_back(run, share);
    } catch (const std::system_error&) {  // the system has no more threads
      run(share);
    }
  }
  run(0);
  for (std::thread& worker : workers) worker.join();
  if (out_of_memory) throw std::bad_alloc();
}

void RunRanges(uint64_t count, size_t threads,
               const std::function<void(uint64_t, uint64_t)>& work) {
  RunShares(threads,
            [&](size_t share) { work(count * share / threads, count * (share + 1) / threads); });
}

}  // namespace kinglet
