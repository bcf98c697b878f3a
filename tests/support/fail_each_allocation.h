// Runs a call again and again, each time with another of its allocations failing.
#ifndef KINGLET_TESTS_SUPPORT_FAIL_EACH_ALLOCATION_H_
#define KINGLET_TESTS_SUPPORT_FAIL_EACH_ALLOCATION_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>

#include "kinglet/status.h"
#include "tests/support/failing_memory.h"

namespace kinglet {

#ifdef KINGLET_SANITIZED
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

// How the sweep goes through the allocations of a call.
struct FailingSweep {
  // For a call that may succeed more than once, single failures are tried too: the call must either
  // report the failure or succeed completely.
  bool repeatable = false;
  int64_t places = INT64_MAX;  // number of allocations that fail in turn, at most, evenly spread
  // libzip 1.7 does not free some blocks of its own where it finds no memory to open an entry.
  bool uses_libzip = false;
};

inline constexpr FailingSweep kRepeatable = {.repeatable = true};

// `call`, which returns a kinglet_status, must fail with KINGLET_OUT_OF_MEMORY, keep no memory and
// change nothing, which `unchanged` checks. Returns and prints the number of allocations.
template <class Call, class Unchanged>
int64_t FailEachAllocation(const char* what, const Call& call, const Unchanged& unchanged,
                           const FailingSweep& sweep = {}) {
  int64_t stride = 1;
  if (sweep.places != INT64_MAX) {
    const uint64_t before = AllocationsMade();
    EXPECT_EQ(call(), KINGLET_OK) << what;
    stride = std::max<int64_t>(1, static_cast<int64_t>(AllocationsMade() - before) / sweep.places);
  }
  const auto blocks = [&] {
    return BlocksHeld() + (sweep.uses_libzip ? 0 : BlocksOfTheCLibrary());
  };
  // Whether the call succeeded without any failure.
  const auto succeeds = [&](int64_t good, Failing which) {
    for (int attempt = 0;; ++attempt) {
      const int64_t held = blocks();
      kinglet_status status;
      bool failed;
      {
        const FailingMemory memory(good, which);
        status = call();
        failed = memory.failed();
      }
      if (status == KINGLET_OK) return !failed;
      EXPECT_EQ(status, KINGLET_OUT_OF_MEMORY) << what << " after " << good << " allocations";
      unchanged();
      if (blocks() == held || testing::Test::HasFailure()) return false;
      // Memory that a first call allocates once for all later calls is no leak.
      if (attempt == 2) {
        ADD_FAILURE() << what << " keeps " << blocks() - held << " blocks after " << good
                      << " allocations";
        return false;
      }
    }
  };
  int64_t good = 0, places = 0;
  for (; good < 1'000'000 && !testing::Test::HasFailure(); good += stride, ++places) {
    if (sweep.repeatable) succeeds(good, Failing::kOne);
    if (succeeds(good, Failing::kAll)) {
      std::printf("%s: %lld allocations, %lld of them failed\n", what, static_cast<long long>(good),
                  static_cast<long long>(places));
      return good;
    }
  }
  ADD_FAILURE() << what << " did not succeed after " << good << " allocations";
  return good;
}

}  // namespace kinglet

#endif  // KINGLET_TESTS_SUPPORT_FAIL_EACH_ALLOCATION_H_
