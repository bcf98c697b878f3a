// How much stack a call takes.
#ifndef KINGLET_TESTS_SUPPORT_PAINTED_STACK_H_
#define KINGLET_TESTS_SUPPORT_PAINTED_STACK_H_

#include <cstddef>
#include <functional>

namespace kinglet {

// Runs the call in a thread whose stack is filled with a pattern, and returns how many bytes below
// the call's frame were written. REQUIRES: the call throws nothing and takes less than a MiB.
size_t StackOf(const std::function<void()>& call);

}  // namespace kinglet

#endif  // KINGLET_TESTS_SUPPORT_PAINTED_STACK_H_
