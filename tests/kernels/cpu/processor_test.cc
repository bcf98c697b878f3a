#include "kernels/cpu/processor.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace kinglet::cpu {
namespace {

using Named = std::vector<std::pair<std::string, bool>>;

// By the names that Linux has for them.
Named ByName(const X86Instructions& x) {
  return {{"avx2", x.avx2},
          {"fma", x.fma},
          {"bmi1", x.bmi},
          {"bmi2", x.bmi2},
          {"aes", x.aes},
          {"pclmulqdq", x.pclmul},
          {"avx512f", x.avx512f},
          {"avx512vl", x.avx512vl},
          {"avx512dq", x.avx512dq},
          {"avx512bw", x.avx512bw},
          {"avx512_vnni", x.avx512vnni}};
}

// A processor that has everything, in a system that saves the registers of `xcr0`.
X86Instructions WithState(uint64_t xcr0) { return InstructionsBy({~0u, ~0u, ~0u, xcr0}); }

TEST(InstructionsBy, NeedsRegistersThatTheSystemSaves) {
  for (const auto& [name, found] : ByName(WithState(0xE7))) EXPECT_TRUE(found) << name;
  for (const uint64_t without_a_part : {0x67, 0xA7, 0xC7, 0x07}) {
    const X86Instructions found = WithState(without_a_part);
    EXPECT_TRUE(found.avx2 && found.fma);
    EXPECT_FALSE(found.avx512f || found.avx512vl || found.avx512dq || found.avx512bw ||
                 found.avx512vnni);
  }
  for (const uint64_t without_avx : {0x01, 0x03, 0x05, 0xE3, 0xE5}) {
    const X86Instructions found = WithState(without_avx);
    EXPECT_FALSE(found.avx2 || found.fma || found.avx512f || found.avx512vnni);
    EXPECT_TRUE(found.bmi && found.bmi2 && found.aes && found.pclmul);
  }
  // xcr0 cannot be asked.
  EXPECT_FALSE(InstructionsBy({~(1u << 27), ~0u, ~0u, 0xE7}).avx2);
}

TEST(InstructionsBy, FindsNothingWhereNothingIs) {
  for (const auto& [name, found] : ByName(InstructionsBy({}))) EXPECT_FALSE(found) << name;
}

#if defined(__x86_64__)
TEST(UsableInstructions, AreThoseOfTheCompilersLibrary) {
  const X86Instructions found = UsableInstructions();
  EXPECT_EQ(found.avx2, __builtin_cpu_supports("avx2") != 0);
  EXPECT_EQ(found.fma, __builtin_cpu_supports("fma") != 0);
  EXPECT_EQ(found.bmi, __builtin_cpu_supports("bmi") != 0);
  EXPECT_EQ(found.bmi2, __builtin_cpu_supports("bmi2") != 0);
  EXPECT_EQ(found.aes, __builtin_cpu_supports("aes") != 0);
  EXPECT_EQ(found.pclmul, __builtin_cpu_supports("pclmul") != 0);
  EXPECT_EQ(found.avx512f, __builtin_cpu_supports("avx512f") != 0);
  EXPECT_EQ(found.avx512vl, __builtin_cpu_supports("avx512vl") != 0);
  EXPECT_EQ(found.avx512dq, __builtin_cpu_supports("avx512dq") != 0);
  EXPECT_EQ(found.avx512bw, __builtin_cpu_supports("avx512bw") != 0);
  EXPECT_EQ(found.avx512vnni, __builtin_cpu_supports("avx512vnni") != 0);
}

TEST(UsableInstructions, AreThoseOfLinux) {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line) && line.rfind("flags", 0) != 0) {
  }
  if (line.rfind("flags", 0) != 0) GTEST_SKIP() << "no flags in /proc/cpuinfo";
  std::istringstream words(line);
  std::set<std::string> flags;
  for (std::string word; words >> word;) flags.insert(word);
  for (const auto& [name, found] : ByName(UsableInstructions())) {
    EXPECT_EQ(found, flags.count(name) != 0) << name;
  }
}
#else
TEST(UsableInstructions, AreNoneElsewhere) {
  for (const auto& [name, found] : ByName(UsableInstructions())) EXPECT_FALSE(found) << name;
}
#endif

}  // namespace
}  // namespace kinglet::cpu
