// Threads that run one function in parallel, many times, with little overhead between the runs.
#ifndef KINGLET_TOOLS_THREAD_TEAM_H_
#define KINGLET_TOOLS_THREAD_TEAM_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "kinglet/status.h"

namespace kinglet {

class ThreadTeam {
 public:
  // The calling thread is one of the `threads` >= 1. KINGLET_OUT_OF_MEMORY if the system has no
  // more threads. Throws std::bad_alloc.
  static Result<std::unique_ptr<ThreadTeam>> Create(size_t threads);
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;
  ~ThreadTeam();

  size_t size() const { return workers_.size() + 1; }
  // Calls work(0), ..., work(size() - 1), each in its own thread, and returns when all of them have
  // returned. `work` does not throw.
  void Run(const std::function<void(size_t part)>& work);

 private:
  explicit ThreadTeam(size_t threads) : expected_(threads) {}
  void WorkAlong(size_t part);
  // Returns when all threads have called it: when work begins, and when it ends. std::barrier may
  // lose wakes where std::atomic does (format/thread_wait.h).
  void Meet();

  std::atomic<size_t> expected_;  // threads that meet
  std::atomic<size_t> there_{0};
  std::atomic<uint32_t> meetings_{0};
  const std::function<void(size_t)>* work_ = nullptr;  // null ends the threads
  std::vector<std::thread> workers_;
};

}  // namespace kinglet

#endif  // KINGLET_TOOLS_THREAD_TEAM_H_
