// Threads that divide the work of one session's calls: the caller's and helpers, which sleep
// between the calls.
//
// Waking a helper costs some microseconds, so only calls with much to do ask for it; from then to
// the end of the call helpers spin while they find nothing to do. The caller waits for no helper
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

class PieceTeam {
 public:
  // The caller's thread is one of the `threads` >= 1. KINGLET_OUT_OF_MEMORY if the system has no
  // more threads. Throws std::bad_alloc.
  static Result<std::unique_ptr<PieceTeam>> Create(size_t threads);
  PieceTeam(const PieceTeam&) = delete;
  PieceTeam& operator=(const PieceTeam&) = delete;
  ~PieceTeam();

  size_t size() const { return helpers_.size() + 1; }

  // The helpers take part from now on, until Sleep.
  void Wake();
  void Sleep();

  // Calls work(Pieces) for parts of pieces [0, count), each piece once, and returns when all calls
  // have. The caller makes all of them unless the helpers are awake; it takes pieces from the
  // front, helpers from the back, so that each goes over the same memory again and again. Throws
  // std::bad_alloc, when all calls have ended, if one does; `work` throws nothing else. One thread
  // at a time may call it.
  template <class Work>
  void Run(size_t count, const Work& work) {
    const auto call = [](const void* erased, Pieces pieces) {
      (*static_cast<const Work*>(erased))(pieces);
    };
    RunPieces(count, call, &work);
  }

 private:
  enum State : uint32_t { kAsleep, kAwake, kDismissed };
  enum class End : uint8_t { kFront, kBack };
  using Call = void (*)(const void* work, Pieces pieces);

  PieceTeam() = default;
  void RunPieces(size_t count, Call call, const void* work);
  void Help();
  // Some of the pieces that nobody has begun; none if there are none.
  std::optional<Pieces> Claim(End end);
  void Do(Pieces pieces);

  // Pieces [low half, high half) of the running work are not begun. A claim is one exchange of this
  // word: whoever succeeds has pieces of the work that runs now, however long ago it read the word,
  // and that work cannot end without it.
  alignas(64) std::atomic<uint64_t> unclaimed_{0};
  // Of the running work, written before unclaimed_ is: read only by those who have claimed.
  Call call_ = nullptr;
  const void* work_ = nullptr;
  alignas(64) std::atomic<size_t> done_by_helpers_{0};  // pieces of the running work
  std::atomic<bool> out_of_memory_{false};
  alignas(64) std::atomic<uint32_t> state_{kAsleep};
  std::vector<std::thread> helpers_;
};

// Processors that the calling thread may run on, at least 1.
size_t UsableProcessors();

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_PIECE_TEAM_H_
