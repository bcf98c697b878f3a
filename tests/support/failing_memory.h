// Lets single allocations of a program fail: operator new, and, without sanitizers, malloc, calloc,
// realloc, mmap and their kin, by whatever library they are called. Replaces them in the programs
// that link it; the shared library allocates through these too.
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
uint64_t AllocationsMadeByNew();
// Those of operator new that have not been freed, and those of malloc, mmap and their kin.
int64_t BlocksHeld();
int64_t BlocksOfTheCLibrary();

}  // namespace kinglet

#endif  // KINGLET_TESTS_SUPPORT_FAILING_MEMORY_H_
