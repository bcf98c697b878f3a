// Rule 7 of docs/NUMERICS.md: every computation runs with rounding to nearest and denormals on,
// whatever the caller has set, and gives the caller's state back.
#ifndef KINGLET_RUNTIME_FLOAT_ENVIRONMENT_H_
#define KINGLET_RUNTIME_FLOAT_ENVIRONMENT_H_

#include <cfenv>

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
