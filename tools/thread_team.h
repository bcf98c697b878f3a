// Threads that run one function in parallel, many times, with little overhead between the runs.
#ifndef KINGLET_TOOLS_THREAD_TEAM_H_
#define KINGLET_TOOLS_THREAD_TEAM_H_

#include <barrier>
#include <cstddef>
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
  explicit ThreadTeam(size_t threads) : barrier_(static_cast<std::ptrdiff_t>(threads)) {}
  void WorkAlong(size_t part);

  std::barrier<> barrier_;                             // passed when work begins and when it ends
  const std::function<void(size_t)>* work_ = nullptr;  // null ends the threads
  std::vector<std::thread> workers_;
};

}  // namespace kinglet

#endif  // KINGLET_TOOLS_THREAD_TEAM_H_
