// Loaded before the command: rounds upward and has no denormals, as libraries whose constructors
// were linked with -ffast-math leave it.
#include <fenv.h>
#if defined(__SSE__)
#include <xmmintrin.h>
#endif

__attribute__((constructor)) static void ChangeEnvironment(void) {
  fesetround(FE_UPWARD);
#if defined(__SSE__)
  _mm_setcsr(_mm_getcsr() | 0x8040);
#endif
}
