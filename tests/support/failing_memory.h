// Lets single allocations of a program fail: operator new, and, without sanitizers, malloc, calloc,
// realloc, mmap and similar functions, also when libraries call them. Replaces these functions in
// programs that link failing_memory, and for the shared library that such a program loads.
#ifndef KINGLET_TESTS_SUPPORT_FAILING_MEMORY_H_
#define KINGLET_TESTS_SUPPORT_FAILING_MEMORY_H_

#include <cstdint>

namespace kinglet {

enum class Failing : uint8_t {
  kOne,  // the allocation that is due, and no other
  kAll,  // the allocation that is due, and all later ones
};

// While the object lives, allocations of all threads are counted, and fail after `good` of them.
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
// Allocations of operator new that have not been freed, and those of malloc, mmap and similar
// functions.
int64_t BlocksHeld();
int64_t BlocksOfTheCLibrary();

}  // namespace kinglet

#endif  // KINGLET_TESTS_SUPPORT_FAILING_MEMORY_H_
