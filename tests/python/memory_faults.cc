// Loaded before the C++ library (LD_PRELOAD) with tests/support/failing_memory.cc: lets Python
// decide which allocation of the kinglet library fails. Python itself does not allocate with
// operator new.
#include <cstdint>
#include <optional>

#include "tests/support/failing_memory.h"

namespace {

std::optional<kinglet::FailingMemory>& Memory() {
  static std::optional<kinglet::FailingMemory> memory;
  return memory;
}

}  // namespace

extern "C" {

// After `good` more allocations the next one fails, or all that follow.
__attribute__((visibility("default"))) void fail_memory(int64_t good, int32_t all) {
  Memory().emplace(good, all != 0 ? kinglet::Failing::kAll : kinglet::Failing::kOne);
}

// Ends the failures; returns whether an allocation has failed.
__attribute__((visibility("default"))) int32_t give_memory() {
  const bool failed = Memory()->failed();
  Memory().reset();
  return failed ? 1 : 0;
}

__attribute__((visibility("default"))) int64_t blocks_held() { return kinglet::BlocksHeld(); }

}  // extern "C"
