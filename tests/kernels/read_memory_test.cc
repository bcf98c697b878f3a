#include "kernels/read_memory.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#ifdef KINGLET_HAVE_CPU_BACKEND
#include "kernels/cpu/cpu.h"
#endif

namespace kinglet::read_memory_test {
namespace {

struct alignas(64) Line {
  std::byte bytes[64];
};

// Bytes without a short period, at a known offset from the start of a cache line.
class Pattern {
 public:
  explicit Pattern(size_t size) : lines_(size / 64 + 2) {
    uint32_t state = 1;
    for (size_t i = 0; i < lines_.size() * 64; ++i) {
      state = state * 1664525 + 1013904223;
      data()[i] = static_cast<std::byte>(state >> 24);
    }
  }
  std::byte* data() { return lines_.data()->bytes; }

 private:
  std::vector<Line> lines_;
};

uint8_t Expected(MemoryRange range) {
  uint8_t sum = 0;
  for (size_t i = 0; i < range.size(); ++i) sum ^= std::to_integer<uint8_t>(range[i]);
  return sum;
}

TEST(ReadMemory, IsTheExclusiveOrOfAllBytesWhereverTheyLie) {
  Pattern pattern(2000);
  for (size_t offset = 0; offset < 66; ++offset) {
    for (const size_t size :
         {0u, 1u, 2u, 62u, 63u, 64u, 65u, 127u, 128u, 129u, 256u, 300u, 1999u}) {
      const MemoryRange range(pattern.data() + offset, size - (size > 100 ? offset : 0));
      EXPECT_EQ(ReadMemory(range), Expected(range)) << offset << " " << size;
    }
  }
  EXPECT_EQ(ReadMemory({}), 0);
}

TEST(ReadMemory, ReadsEveryByteOfALargeRange) {
  constexpr size_t kSize = 100000;
  Pattern pattern(kSize);
  const MemoryRange range(pattern.data() + 3, kSize - 3);
  const uint8_t sum = ReadMemory(range);
  EXPECT_EQ(sum, Expected(range));
  // A bit in each line, in a byte that moves through the line.
  for (size_t i = 3; i < kSize; i += 65) {
    pattern.data()[i] ^= std::byte{0x10};
    EXPECT_EQ(ReadMemory(range), sum ^ 0x10) << i;
    pattern.data()[i] ^= std::byte{0x10};
  }
}

TEST(ReadMemory, ReadsNothingBeyondItsRange) {
  // AddressSanitizer checks the ends of an allocation of exactly this size.
  for (const size_t size : {1u, 63u, 64u, 65u, 1000u}) {
    const auto memory = std::make_unique<std::byte[]>(size);
    for (size_t i = 0; i < size; ++i) memory[i] = static_cast<std::byte>(i);
    const MemoryRange range(memory.get(), size);
    EXPECT_EQ(ReadMemory(range), Expected(range));
  }
}

#ifdef KINGLET_HAVE_CPU_BACKEND
TEST(ReadLines, EveryInstructionSetReadsEveryLine) {
  Pattern pattern(64 * 40);
  for (const cpu::Target target : cpu::SupportedTargets()) {
    const cpu::VectorFunctions* functions = cpu::FindVectorFunctions(target);
    if (functions == nullptr) continue;
    for (size_t count = 0; count <= 40; ++count) {
      uint64_t token = functions->read_lines(pattern.data(), count);
      uint8_t sum = 0;
      for (; token != 0; token >>= 8) sum = static_cast<uint8_t>(sum ^ (token & 0xFF));
      EXPECT_EQ(sum, Expected({pattern.data(), count * 64})) << cpu::TargetName(target);
    }
  }
}
#endif

}  // namespace
}  // namespace kinglet::read_memory_test
