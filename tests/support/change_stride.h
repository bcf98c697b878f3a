// How far apart the changes of a file are that a test tries.
#ifndef KINGLET_TESTS_SUPPORT_CHANGE_STRIDE_H_
#define KINGLET_TESTS_SUPPORT_CHANGE_STRIDE_H_

#include <cstddef>

namespace kinglet {

// Each byte, but each third under a sanitizer, where a try takes ten times as long. Fields have
// sizes of powers of two, so that every byte of some field is changed.
#ifdef KINGLET_SANITIZED
inline constexpr size_t kChangeStride = 3;
#else
inline constexpr size_t kChangeStride = 1;
#endif

}  // namespace kinglet

#endif  // KINGLET_TESTS_SUPPORT_CHANGE_STRIDE_H_
