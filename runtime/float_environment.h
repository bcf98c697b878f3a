// Rule 7 of docs/NUMERICS.md: every computation runs with rounding to nearest and denormals on,
// whatever the caller has set, and gives the caller's state back.
#ifndef KINGLET_RUNTIME_FLOAT_ENVIRONMENT_H_
#define KINGLET_RUNTIME_FLOAT_ENVIRONMENT_H_

#include <cfenv>
#include <cstdint>

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace kinglet {

class FloatEnvironment {
 public:
  FloatEnvironment() {
    std::feholdexcept(&saved_);  // exceptions masked as well: a caller may have unmasked them
    std::fesetround(FE_TONEAREST);
#if defined(__SSE__)
    constexpr unsigned kFlushToZero = 0x8000;
    constexpr unsigned kDenormalsAreZero = 0x0040;
    _mm_setcsr(_mm_getcsr() & ~(kFlushToZero | kDenormalsAreZero));
#elif defined(__aarch64__)
    constexpr uint64_t kFlushToZero = uint64_t{1} << 24 | uint64_t{1} << 19;  // FPCR.FZ and FZ16
    uint64_t control;
    asm volatile("mrs %0, fpcr" : "=r"(control));
    asm volatile("msr fpcr, %0" : : "r"(control & ~kFlushToZero));
#endif
  }
  // fesetenv restores the SSE control word too, flush-to-zero included.
  ~FloatEnvironment() { std::fesetenv(&saved_); }
  FloatEnvironment(const FloatEnvironment&) = delete;
  FloatEnvironment& operator=(const FloatEnvironment&) = delete;

 private:
  std::fenv_t saved_;
};

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_FLOAT_ENVIRONMENT_H_
