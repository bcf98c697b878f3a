// Counts the bytes that a program has allocated by operator new, so that a test can bound a
// function's memory.
#ifndef KINGLET_TESTS_SUPPORT_COUNTED_MEMORY_H_
#define KINGLET_TESTS_SUPPORT_COUNTED_MEMORY_H_

#include <cstdint>

namespace kinglet {

// Measures from its construction on. REQUIRES: one object at a time.
class CountedMemory {
 public:
  CountedMemory();
  // The largest number of bytes allocated at once, less those allocated at construction. Includes
  // the allocator's rounding; memory mapped by other means does not count.
  uint64_t Peak() const;

 private:
  int64_t start_;
};

}  // namespace kinglet

#endif  // KINGLET_TESTS_SUPPORT_COUNTED_MEMORY_H_
