// Rule 7 of docs/NUMERICS.md: every computation rounds to nearest and keeps denormals, whatever the
// caller's thread has set. The destructor restores the caller's settings.
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
    std::feholdexcept(&saved_);  // masks exceptions too, which the caller may have unmasked
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
