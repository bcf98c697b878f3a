#include "kernels/cpu/processor.h"

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

namespace kinglet::cpu {
namespace {

constexpr bool Bit(uint32_t word, int bit) { return ((word >> bit) & 1) != 0; }
constexpr int kOsxsave = 27;  // in ecx1: xcr0 can be read

X86Registers ReadRegisters() {
  X86Registers read = {};
#if defined(__x86_64__) || defined(__i386__)
  uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0) read.ecx1 = ecx;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0) {
    read.ebx7 = ebx;
    read.ecx7 = ecx;
  }
  if (Bit(read.ecx1, kOsxsave)) {
    uint32_t low = 0, high = 0;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    read.xcr0 = uint64_t{high} << 32 | low;
  }
#endif
  return read;
}

}  // namespace

X86Instructions InstructionsBy(const X86Registers& registers) {
  const auto [ecx1, ebx7, ecx7, xcr0] = registers;
  // The system saves the registers of SSE and AVX; for AVX-512 also the masks, the upper halves of
  // the first 16 registers, and the other 16. macOS does so from the first use on, so that before
  // it AVX-512 is not found there.
  constexpr uint64_t kAvxState = 0x06, kAvx512State = 0xE6;
  const bool avx = Bit(ecx1, kOsxsave) && Bit(ecx1, 28) && (xcr0 & kAvxState) == kAvxState;
  const bool avx512 = avx && Bit(ebx7, 16) && (xcr0 & kAvx512State) == kAvx512State;
  return {.avx2 = avx && Bit(ebx7, 5),
          .fma = avx && Bit(ecx1, 12),
          .bmi = Bit(ebx7, 3),
          .bmi2 = Bit(ebx7, 8),
          .aes = Bit(ecx1, 25),
          .pclmul = Bit(ecx1, 1),
          .avx512f = avx512,
          .avx512vl = avx512 && Bit(ebx7, 31),
          .avx512dq = avx512 && Bit(ebx7, 17),
          .avx512bw = avx512 && Bit(ebx7, 30),
          .avx512vnni = avx512 && Bit(ecx7, 11)};
}

X86Instructions UsableInstructions() {
  static const X86Instructions usable = InstructionsBy(ReadRegisters());
  return usable;
}

}  // namespace kinglet::cpu
