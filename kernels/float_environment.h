// Rule 7 of docs/NUMERICS.md: every computation rounds to nearest, keeps denormals and raises no
// signal, whatever the caller's thread has set. The functions of the C interface and the command
// construct one FloatEnvironment each; threads inherit the environment of the thread that starts
// them.
#ifndef KINGLET_KERNELS_FLOAT_ENVIRONMENT_H_
#define KINGLET_KERNELS_FLOAT_ENVIRONMENT_H_

#if defined(__x86_64__)
#include <xmmintrin.h>

#include <cstdint>
#elif defined(__aarch64__)
#include <cstdint>
#elif !defined(__wasm__)
#include <cfenv>
#endif

namespace kinglet {

// The constructor sets the environment, and the destructor restores what the thread had: rounding,
// traps, treatment of denormals, precision, and the flags of exceptions. A compiler may move
// arithmetic across either, so computations are functions of their own that are not inlined.
// Written without <cfenv> for known processors: its functions take 200 ns, reading the registers
// takes 30.
class FloatEnvironment {
 public:
  FloatEnvironment(const FloatEnvironment&) = delete;
  FloatEnvironment& operator=(const FloatEnvironment&) = delete;

#if defined(__x86_64__)
  FloatEnvironment() : sse_(_mm_getcsr()) {
    if ((sse_ & ~kSseFlags) != kSseDefault) _mm_setcsr(kSseDefault);
    asm volatile("fnstcw %0" : "=m"(x87_control_));
    asm volatile("fnstsw %0" : "=m"(x87_status_));
    if (x87_control_ == kX87Default) return;
    asm volatile("fnclex\n\tfldcw %0" : : "m"(kX87Default));  // a pending exception is the caller's
  }
  ~FloatEnvironment() {
    if (_mm_getcsr() != sse_) _mm_setcsr(sse_);
    uint16_t control, status;
    asm volatile("fnstcw %0" : "=m"(control));
    asm volatile("fnstsw %0" : "=m"(status));
    if (control == x87_control_ && status == x87_status_) return;
    X87Environment x87;
    asm volatile("fnstenv %0" : "=m"(x87));
    x87.control = x87_control_;
    x87.status = x87_status_;
    asm volatile("fldenv %0" : : "m"(x87));
  }

 private:
  // The environment of a new process: to nearest, no traps, denormals kept; x87 with 64 bits.
  static constexpr uint32_t kSseFlags = 0x3F, kSseDefault = 0x1F80;
  static constexpr uint16_t kX87Default = 0x037F;
  struct X87Environment {  // what fnstenv writes
    uint16_t control, unused, status;
    uint16_t others[11];
  };
  uint32_t sse_;
  uint16_t x87_control_, x87_status_;
#elif defined(__aarch64__)
  FloatEnvironment() {
    asm volatile("mrs %0, fpcr" : "=r"(control_));
    asm volatile("mrs %0, fpsr" : "=r"(status_));
    if (control_ != 0) asm volatile("msr fpcr, %0" : : "r"(uint64_t{0}));
  }
  ~FloatEnvironment() {
    uint64_t control;
    asm volatile("mrs %0, fpcr" : "=r"(control));
    if (control != control_) asm volatile("msr fpcr, %0" : : "r"(control_));
    asm volatile("msr fpsr, %0" : : "r"(status_));
  }

 private:
  uint64_t control_, status_;
#elif defined(__wasm__)
  FloatEnvironment() {}  // its environment cannot be changed
  ~FloatEnvironment() {}
#else
  FloatEnvironment() {
    std::feholdexcept(&saved_);
    std::fesetround(FE_TONEAREST);
  }
  ~FloatEnvironment() { std::fesetenv(&saved_); }

 private:
  std::fenv_t saved_;
#endif
};

}  // namespace kinglet

#endif  // KINGLET_KERNELS_FLOAT_ENVIRONMENT_H_
