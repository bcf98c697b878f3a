#include "converters/thread_shares.h"

#include <atomic>
#include <exception>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

#include "format/system.h"

namespace kinglet {

size_t MachineThreads() { return system::UsableProcessors(); }

namespace {

// Threads that are waited for, also where an exception leaves their scope.
struct JoinedThreads {
  ~JoinedThreads() {
    for (std::thread& thread : threads) thread.join();
  }
  std::vector<std::thread> threads;
};

}  // namespace

void RunShares(size_t threads, const std::function<void(size_t)>& work) {
  std::atomic_flag has_thrown = ATOMIC_FLAG_INIT;
  std::exception_ptr thrown;  // the first
  const auto run = [&](size_t share) noexcept {
    try {
      work(share);
    } catch (...) {
      if (!has_thrown.test_and_set()) thrown = std::current_exception();
    }
  };
  {
    JoinedThreads workers;
    workers.threads.reserve(threads - 1);
    for (size_t share = 1; share < threads; ++share) {
      try {
        workers.threads.emplace_back(run, share);
      } catch (const std::system_error&) {  // the system has no more threads
        run(share);
      } catch (const std::bad_alloc&) {  // nor memory for one
        run(share);
      }
    }
    run(0);
  }
  if (thrown != nullptr) std::rethrow_exception(thrown);
}

void RunRanges(uint64_t count, size_t threads,
               const std::function<void(uint64_t, uint64_t)>& work) {
  RunShares(threads,
            [&](size_t share) { work(count * share / threads, count * (share + 1) / threads); });
}

}  // namespace kinglet
