// Counts the bytes that a program holds through operator new: a test that links this library can
// bound what a function needs.
#ifndef KINGLET_TESTS_SUPPORT_COUNTED_MEMORY_H_
#define KINGLET_TESTS_SUPPORT_COUNTED_MEMORY_H_

#include <cstdint>

namespace kinglet {

// Measures from its construction on; one at a time.
class CountedMemory {
 public:
  CountedMemory();
  // The most bytes held at a time beyond those that were held at the start, allocators' rounding
  // included. Memory mapped by other means does not count.
  uint64_t Peak() const;

 private:
  int64_t start_;
};

}  // namespace kinglet

#endif  // KINGLET_TESTS_SUPPORT_COUNTED_MEMORY_H_
