#include "tools/thread_team.h"

#include <new>
#include <string>
#include <system_error>

#include "format/thread_wait.h"

namespace kinglet {

Result<std::unique_ptr<ThreadTeam>> ThreadTeam::Create(size_t threads) {
  std::unique_ptr<ThreadTeam> team(new ThreadTeam(threads));
  team->workers_.reserve(threads - 1);
  // Only threads that have started can meet; the destructor ends them.
  const auto give_up = [&] { team->expected_ = team->size(); };
  try {
    for (size_t part = 1; part < threads; ++part) {
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
  if (!workers_.empty()) Meet();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadTeam::Meet() {
  const uint32_t meeting = meetings_.load(std::memory_order_relaxed);
  if (there_.fetch_add(1) + 1 < expected_) return system::WaitWhile(meetings_, meeting);
  there_ = 0;
  meetings_.store(meeting + 1, std::memory_order_release);
  system::WakeAll(meetings_);
}

void ThreadTeam::WorkAlong(size_t part) {
  for (;;) {
    Meet();
    if (work_ == nullptr) return;
    (*work_)(part);
    Meet();
  }
}

void ThreadTeam::Run(const std::function<void(size_t)>& work) {
  if (workers_.empty()) return work(0);
  work_ = &work;
  Meet();
  work(0);
  Meet();
}

}  // namespace kinglet
