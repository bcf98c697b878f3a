// Threads that divide the work of one session's calls: the caller's and workers, which sleep
// between the calls.
//
// Waking a worker costs some microseconds, so only calls with much to do ask for it; from then to
// the end of the call workers spin while they find nothing to do. The caller waits for no worker
// but those that have begun something: one that is still waking up, or that the system has put
// aside, costs nothing.
#ifndef KINGLET_RUNTIME_PIECE_TEAM_H_
#define KINGLET_RUNTIME_PIECE_TEAM_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "kernels/backend.h"
#include "kinglet/status.h"

namespace kinglet {

class WorkerTeam {
 public:
  // The caller's thread is one of the `threads` >= 1. KINGLET_OUT_OF_MEMORY if the system has no
  // more threads. Throws std::bad_alloc.
  static Result<std::unique_ptr<WorkerTeam>> Create(size_t threads);
  WorkerTeam(const WorkerTeam&) = delete;
  WorkerTeam& operator=(const WorkerTeam&) = delete;
  ~WorkerTeam();

  size_t size() const { return workers_.size() + 1; }

  // The workers take part from now on, until Sleep.
  void Wake();
  void Sleep();

  // Calls work(Chunks) for parts of chunks [0, count), each chunk once, and returns when all calls
  // have. The caller makes all of them unless the workers are awake; it takes chunks from the
  // front, workers from the back, so that each goes over the same memory again and again. Throws
  // std::bad_alloc, when all calls have ended, if one does; `work` throws nothing else. One thread
  // at a time may call it.
  template <class Work>
  void Run(size_t count, const Work& work) {
    const auto call = [](const void* erased, Chunks chunks) {
      (*static_cast<const Work*>(erased))(chunks);
    };
    RunChunks(count, call, &work);
  }

 private:
  enum State : uint32_t { kAsleep, kAwake, kDismissed };
  enum class End : uint8_t { kFront, kBack };
  using Call = void (*)(const void* work, Chunks chunks);

  WorkerTeam() = default;
  void RunChunks(size_t count, Call call, const void* work);
  void Help();
  // Some of the chunks that nobody has begun; none if there are none.
  std::optional<Chunks> Claim(End end);
  void Do(Chunks chunks);

  // Chunks [low half, high half) of the running work are not begun. A claim is one exchange of this
  // word: whoever succeeds has chunks of the work that runs now, however long ago it read the word,
  // and that work cannot end without it.
  alignas(64) std::atomic<uint64_t> unclaimed_{0};
  // Of the running work, written before unclaimed_ is: read only by those who have claimed.
  Call call_ = nullptr;
  const void* work_ = nullptr;
  alignas(64) std::atomic<size_t> done_by_workers_{0};  // chunks of the running work
  std::atomic<bool> out_of_memory_{false};
  alignas(64) std::atomic<uint32_t> state_{kAsleep};
  std::vector<std::thread> workers_;
};

// Processors that the calling thread may run on, at least 1.
size_t UsableProcessors();

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_PIECE_TEAM_H_
