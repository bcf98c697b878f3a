// The threads among which the work of one session's calls is divided: the caller's thread, and
// workers that sleep between the calls.
//
// Waking a worker costs some microseconds, so only calls with much work wake workers. From then
// until the end of the call, workers spin while they have nothing to do. The caller waits only for
// workers that have begun a part of the work: a worker that is still waking up, or that the system
// does not run, costs nothing. In a child process that fork(2) made between two calls no worker
// exists, and the caller does all work.
#ifndef KINGLET_RUNTIME_WORKER_TEAM_H_
#define KINGLET_RUNTIME_WORKER_TEAM_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "format/system.h"
#include "kernels/backend.h"
#include "kinglet/status.h"

namespace kinglet {

class WorkerTeam {
 public:
  // `threads` >= 1 counts the caller's thread. The workers block all signals, which are the host
  // program's to handle. KINGLET_OUT_OF_MEMORY if the system has no more threads. Throws
  // std::bad_alloc.
  static Result<std::unique_ptr<WorkerTeam>> Create(size_t threads);
  WorkerTeam(const WorkerTeam&) = delete;
  WorkerTeam& operator=(const WorkerTeam&) = delete;
  ~WorkerTeam();

  size_t size() const { return workers_->size() + 1; }

  // The workers take part from Wake until Sleep.
  void Wake();
  void Sleep();

  // Calls work(Chunks) for parts of chunks [0, count), each chunk once, and returns when all calls
  // have returned. If the workers sleep, the caller makes all calls. Otherwise the caller takes
  // chunks from the front and the workers take chunks from the back, so that each thread reads the
  // same memory in every call. If a call of `work` throws std::bad_alloc, Run throws it when all
  // calls have ended; `work` throws nothing else. One thread at a time may call Run.
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
  // Takes some of the chunks that no thread has taken. Returns nullopt if no chunk is left.
  std::optional<Chunks> Claim(End end);
  void Do(Chunks chunks);

  // Chunks [low half, high half) of the running work are not taken. Taking some is one exchange of
  // this value: a thread that succeeds has chunks of the work that runs now, however long ago the
  // thread read the value, and that work cannot end without these chunks.
  alignas(64) std::atomic<uint64_t> unclaimed_{0};
  // The running work; written before unclaimed_, and read only by threads that have taken chunks.
  Call call_ = nullptr;
  const void* work_ = nullptr;
  alignas(64) std::atomic<size_t> done_by_workers_{0};  // chunks of the running work
  std::atomic<bool> out_of_memory_{false};
  alignas(64) std::atomic<uint32_t> state_{kAsleep};
  // The threads of this process only: a child that fork made has the object but not the threads.
  std::unique_ptr<std::vector<std::thread>> workers_;
  const uint64_t process_ = system::ProcessNumber();
};

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_WORKER_TEAM_H_
