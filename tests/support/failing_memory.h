// Lets single allocations of a program fail. Replaces operator new in the programs that link it;
// the shared library allocates through these operators too.
#ifndef KINGLET_TESTS_SUPPORT_FAILING_MEMORY_H_
#define KINGLET_TESTS_SUPPORT_FAILING_MEMORY_H_

#include <cstdint>

namespace kinglet {

enum class Failing : uint8_t {
  kOne,  // the allocation that is due, and no other
  kAll,  // that one and all later ones
};

// While it lives, allocations of all threads are counted, and after `good` of them they fail.
// REQUIRES: one object at a time.
class FailingMemory {
 public:
  FailingMemory(int64_t good, Failing which);
  ~FailingMemory();
  FailingMemory(const FailingMemory&) = delete;
  FailingMemory& operator=(const FailingMemory&) = delete;
  // Whether an allocation has failed.
  bool failed() const;
};

// Allocations made by all threads so far.
uint64_t AllocationsMade();
// Those that have not been freed.
int64_t BlocksHeld();

}  // namespace kinglet

#endif  // KINGLET_TESTS_SUPPORT_FAILING_MEMORY_H_
