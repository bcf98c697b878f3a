#include "runtime/worker_team.h"

#include <new>
#include <string>
#include <system_error>

#include "format/thread_wait.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace kinglet {
namespace {

// Waits a moment: at first by spinning, later by yielding the processor, because the thread that is
// waited for may need the processor if threads outnumber processors.
class Patience {
 public:
  void Wait() {
    if (++waits_ < kSpins) {
#if defined(__SSE2__)
      _mm_pause();
#elif defined(__aarch64__)
      asm volatile("isb");
#endif
    } else {
      std::this_thread::yield();
    }
  }

 private:
  static constexpr int kSpins = 200;
  int waits_ = 0;
};

uint64_t Packed(uint64_t begin, uint64_t end) { return begin | end << 32; }

}  // namespace

Result<std::unique_ptr<WorkerTeam>> WorkerTeam::Create(size_t threads) {
  std::unique_ptr<WorkerTeam> team(new WorkerTeam);
  team->workers_ = std::make_unique<std::vector<std::thread>>();
  team->workers_->reserve(threads - 1);
  try {
    while (team->size() < threads) {
      team->workers_->push_back(system::StartThread(
          [](void* helped) { static_cast<WorkerTeam*>(helped)->Help(); }, team.get()));
    }
  } catch (const std::system_error&) {
    return Status::Refusal(KINGLET_OUT_OF_MEMORY, "threads", std::to_string(threads) + " of them",
                           "as many from the system", std::to_string(team->size()));
  }
  return team;
}

WorkerTeam::~WorkerTeam() {
  if (workers_ == nullptr) return;
  if (system::ProcessNumber() != process_) {
    // In a child process no thread exists to wait for, but a std::thread may not be destroyed
    // unless it was waited for.
    static_cast<void>(workers_.release());
    return;
  }
  state_.store(kDismissed, std::memory_order_release);
  system::WakeAll(state_);
  for (std::thread& worker : *workers_) worker.join();
}

void WorkerTeam::Wake() {
  if (workers_->empty() || state_.load(std::memory_order_relaxed) == kAwake) return;
  state_.store(kAwake, std::memory_order_release);
  system::WakeAll(state_);
}

void WorkerTeam::Sleep() { state_.store(kAsleep, std::memory_order_relaxed); }

std::optional<Chunks> WorkerTeam::Claim(End from) {
  uint64_t claim = unclaimed_.load(std::memory_order_relaxed);
  for (;;) {
    const uint64_t begin = claim & UINT32_MAX, end = claim >> 32, left = end - begin;
    if (left == 0) return std::nullopt;
    // One thread's part of the chunks left: few exchanges, and little to wait for at the end.
    const uint64_t taken = (left + size() - 1) / size();
    const bool front = from == End::kFront;
    const uint64_t rest = front ? Packed(begin + taken, end) : Packed(begin, end - taken);
    if (unclaimed_.compare_exchange_weak(claim, rest, std::memory_order_acq_rel,
                                         std::memory_order_relaxed)) {
      return front ? Chunks{begin, begin + taken} : Chunks{end - taken, end};
    }
  }
}

void WorkerTeam::Do(Chunks chunks) {
  try {
    call_(work_, chunks);
  } catch (const std::bad_alloc&) {
    out_of_memory_.store(true, std::memory_order_relaxed);
  }
}

void WorkerTeam::Help() {
  for (;;) {
    system::WaitWhile(state_, kAsleep);
    Patience patience;
    for (;;) {
      const uint32_t state = state_.load(std::memory_order_acquire);
      if (state == kDismissed) return;
      if (state == kAsleep) break;
      if (const std::optional<Chunks> chunks = Claim(End::kBack)) {
        Do(*chunks);
        done_by_workers_.fetch_add(chunks->end - chunks->begin, std::memory_order_release);
        patience = {};
      } else {
        patience.Wait();
      }
    }
  }
}

void WorkerTeam::RunChunks(size_t count, Call call, const void* work) {
  if (count < 2 || count > UINT32_MAX || state_.load(std::memory_order_relaxed) != kAwake) {
    return call(work, {0, count});
  }
  call_ = call;
  work_ = work;
  done_by_workers_.store(0, std::memory_order_relaxed);
  unclaimed_.store(Packed(0, count), std::memory_order_release);
  size_t left = count;
  while (const std::optional<Chunks> chunks = Claim(End::kFront)) {
    Do(*chunks);
    left -= chunks->end - chunks->begin;
  }
  for (Patience patience; done_by_workers_.load(std::memory_order_acquire) != left;) {
    patience.Wait();
  }
  if (out_of_memory_.load(std::memory_order_relaxed)) {
    out_of_memory_.store(false, std::memory_order_relaxed);
    throw std::bad_alloc();
  }
}

}  // namespace kinglet
