// What instructions an x86 processor has, asked of the processor itself. The compilers' own
// question, __builtin_cpu_supports, needs a part of their libraries that zig's lacks.
#ifndef KINGLET_KERNELS_CPU_PROCESSOR_H_
#define KINGLET_KERNELS_CPU_PROCESSOR_H_

#include <cstdint>

namespace kinglet::cpu {

// Whether each can be used: the processor has it, and the system saves the registers that it uses.
struct X86Instructions {
  bool avx2, fma, bmi, bmi2, aes, pclmul;
  bool avx512f, avx512vl, avx512dq, avx512bw, avx512vnni;
};

// Registers after the instruction cpuid with 1 and with 7 (Intel's manual, volume 2A; AMD's, volume
// 3), and the extended control register 0; 0 where the processor lacks them.
struct X86Registers {
  uint32_t ecx1, ebx7, ecx7;
  uint64_t xcr0;
};

X86Instructions InstructionsBy(const X86Registers& registers);

// Of this machine.
X86Instructions UsableInstructions();

}  // namespace kinglet::cpu

#endif  // KINGLET_KERNELS_CPU_PROCESSOR_H_
