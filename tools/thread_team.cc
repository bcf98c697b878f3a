#include "tools/thread_team.h"

#include <new>
#include <string>
#include <system_error>

namespace kinglet {

Result<std::unique_ptr<ThreadTeam>> ThreadTeam::Create(size_t threads) {
  std::unique_ptr<ThreadTeam> team(new ThreadTeam(threads));
  team->workers_.reserve(threads - 1);
  size_t part = 1;
  // Removes the threads that could not start from the barrier; the destructor ends the others.
  const auto give_up = [&] {
    for (; part < threads; ++part) team->barrier_.arrive_and_drop();
  };
  try {
    for (; part < threads; ++part) {
      team->workers_.emplace_back(&ThreadTeam::WorkAlong, team.get(), part);
    }
  } catch (const std::system_error&) {
    give_up();
    return Status::Refusal(KINGLET_OUT_OF_MEMORY, "threads", std::to_string(threads) + " threads",
                           "that many from the system", std::to_string(team->workers_.size() + 1));
  } catch (const std::bad_alloc&) {
    give_up();
    throw;
  }
  return team;
}

ThreadTeam::~ThreadTeam() {
  work_ = nullptr;
  if (!workers_.empty()) barrier_.arrive_and_wait();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadTeam::WorkAlong(size_t part) {
  for (;;) {
    barrier_.arrive_and_wait();
    if (work_ == nullptr) return;
    (*work_)(part);
    barrier_.arrive_and_wait();
  }
}

void ThreadTeam::Run(const std::function<void(size_t)>& work) {
  if (workers_.empty()) return work(0);
  work_ = &work;
  barrier_.arrive_and_wait();
  work(0);
  barrier_.arrive_and_wait();
}

}  // namespace kinglet
