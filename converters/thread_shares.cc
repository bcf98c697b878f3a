#include "converters/thread_shares.h"

#include <algorithm>
#include <system_error>
#include <thread>
#include <vector>

namespace kinglet {

size_t MachineThreads() { return std::max<size_t>(1, std::thread::hardware_concurrency()); }

void RunShares(size_t threads, const std::function<void(size_t)>& work) {
  std::vector<std::thread> helpers;
  helpers.reserve(threads - 1);
  for (size_t share = 1; share < threads; ++share) {
    try {
      helpers.emplace_back(work, share);
    } catch (const std::system_error&) {  // no more threads to be had: this one does the share
      work(share);
    }
  }
  work(0);
  for (std::thread& helper : helpers) helper.join();
}

}  // namespace kinglet
