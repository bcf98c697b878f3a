#include "kernels/read_memory.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#if defined(KINGLET_HAVE_CPU_BACKEND)
#include "kernels/cpu/cpu.h"
#endif

namespace kinglet {
namespace {

constexpr size_t kLine = 64;

// Exclusive or of the 64-bit values of `lines` lines.
using ReadLines = uint64_t (*)(const std::byte* lines, size_t count);

uint64_t ReadLinesWithoutVectors(const std::byte* lines, size_t count) {
  uint64_t sums[kLine / sizeof(uint64_t)] = {};
  for (size_t i = 0; i < count; ++i) {
    uint64_t values[kLine / sizeof(uint64_t)];
    std::memcpy(values, lines + i * kLine, kLine);
    for (size_t w = 0; w < kLine / sizeof(uint64_t); ++w) sums[w] ^= values[w];
  }
  uint64_t sum = 0;
  for (const uint64_t value : sums) sum ^= value;
  return sum;
}

ReadLines FastestReadLines() {
#if defined(KINGLET_HAVE_CPU_BACKEND)
  const auto* functions = cpu::FindVectorFunctions(cpu::SupportedTargets().front());
  if (functions != nullptr) return functions->read_lines;
#endif
  return ReadLinesWithoutVectors;
}

uint8_t ReadBytes(MemoryRange range) {
  uint8_t sum = 0;
  for (const std::byte byte : range) sum = static_cast<uint8_t>(sum ^ static_cast<uint8_t>(byte));
  return sum;
}

}  // namespace

uint8_t ReadMemory(MemoryRange range) {
  static const ReadLines read_lines = FastestReadLines();
  const size_t past = reinterpret_cast<uintptr_t>(range.data()) % kLine;
  const size_t before = std::min(past == 0 ? 0 : kLine - past, range.size());
  const size_t lines = (range.size() - before) / kLine;
  uint64_t folded = lines == 0 ? 0 : read_lines(range.data() + before, lines);
  for (int half = 32; half >= 8; half /= 2) folded ^= folded >> half;
  return static_cast<uint8_t>(static_cast<uint8_t>(folded) ^ ReadBytes(range.first(before)) ^
                              ReadBytes(range.subspan(before + lines * kLine)));
}

}  // namespace kinglet
