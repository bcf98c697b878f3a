// What a process has used of its processors.
#ifndef KINGLET_TESTS_SUPPORT_PROCESSOR_TIME_H_
#define KINGLET_TESTS_SUPPORT_PROCESSOR_TIME_H_

#include <ctime>

namespace kinglet {

// Seconds of all threads of this process. std::clock counts the time of day on Windows.
inline double ProcessorSeconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

}  // namespace kinglet

#endif  // KINGLET_TESTS_SUPPORT_PROCESSOR_TIME_H_
