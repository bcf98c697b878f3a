// Threads that wait for a number to change, as std::atomic::wait has it. In libstdc++ 12 that loses
// wakes where a system has no futex: it looks at the number before it takes the lock with which it
// waits, so a wake between the two ends no wait. mingw-w64 for Windows is such a system.
#ifndef KINGLET_FORMAT_THREAD_WAIT_H_
#define KINGLET_FORMAT_THREAD_WAIT_H_

#include <atomic>
#include <cstdint>

namespace kinglet::system {

// Returns when `number` differs from `old`, which it reads like an acquire.
void WaitWhile(const std::atomic<uint32_t>& number, uint32_t old);
// To be called after the number was changed.
void WakeAll(std::atomic<uint32_t>& number);

#ifndef _WIN32  // for which they are in system_windows.cc
inline void WaitWhile(const std::atomic<uint32_t>& number, uint32_t old) {
  number.wait(old, std::memory_order_acquire);
}
inline void WakeAll(std::atomic<uint32_t>& number) { number.notify_all(); }
#endif

}  // namespace kinglet::system

#endif  // KINGLET_FORMAT_THREAD_WAIT_H_
