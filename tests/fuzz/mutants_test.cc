// Mutants of models through the C interface, within bounds of time and memory.
//
//   KINGLET_MUTANTS=20000 KINGLET_FIRST_MUTANT=1 fuzz_mutant_tests
//
// scripts/soak mutants runs these tests with sanitizers. A number names the same mutant on every
// machine.
#include "tests/fuzz/mutants.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include "runtime/model.h"
#include "tests/support/counted_memory.h"

// Sanitizers call it before they end the program.
extern "C" void __sanitizer_set_death_callback(void (*callback)()) __attribute__((weak));

namespace kinglet::fuzz {
namespace {

#ifdef KINGLET_SANITIZED
constexpr uint64_t kMutants = 100;
#else
constexpr uint64_t kMutants = 300;
#endif

uint64_t current = 0;

uint64_t NumberFrom(const char* variable, uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// Sanitizers slow the processor down, and refused files are small.
constexpr double kMostSeconds = 10;
// Bounds for one file: the memory of opening without a limit, and of a session with a limit, each
// including a constant part.
constexpr uint64_t kOther = uint64_t{16} << 20;

TEST(Mutants, EveryoneIsRefusedOrUsedWithinBounds) {
  if (__sanitizer_set_death_callback != nullptr) {
    __sanitizer_set_death_callback(
        [] { std::fprintf(stderr, "mutant %llu\n", static_cast<unsigned long long>(current)); });
  }
  const uint64_t first = NumberFrom("KINGLET_FIRST_MUTANT", 1);
  const uint64_t count = NumberFrom("KINGLET_MUTANTS", kMutants);
  uint64_t opened = 0, largest = 0;
  double longest_open = 0, longest_use = 0, most_of_bound = 0;
  for (uint64_t i = 0; i < count; ++i) {
    current = first + i;
    const auto file = MakeMutant(current);
    MutantUse use;
    const CountedMemory memory;
    try {
      use = UseMutant(file);
    } catch (const std::exception& finding) {
      ADD_FAILURE() << "mutant " << current << ": " << finding.what();
    }
    const uint64_t peak = memory.Peak();
    const uint64_t bound = kOpeningBytes + kOpeningBytesPerByte * file.size() + kOther;
    EXPECT_LE(peak, bound) << "mutant " << current << ", " << file.size() << " bytes";
    EXPECT_LE(use.open_seconds, kMostSeconds) << "mutant " << current;
    EXPECT_LE(use.use_seconds, kMostSeconds) << "mutant " << current;
    opened += use.opened ? 1 : 0;
    largest = std::max(largest, peak);
    most_of_bound = std::max(most_of_bound, static_cast<double>(peak) / static_cast<double>(bound));
    longest_open = std::max(longest_open, use.open_seconds);
    longest_use = std::max(longest_use, use.use_seconds);
  }
  std::printf(
      "%llu mutants, %llu opened; longest opening %.3f s, longest use %.3f s; most memory "
      "%.1f MB, %.0f %% of its bound\n",
      static_cast<unsigned long long>(count), static_cast<unsigned long long>(opened), longest_open,
      longest_use, static_cast<double>(largest) / 1e6, 100 * most_of_bound);
  // Enough mutants pass the checks, and enough are refused.
  EXPECT_GT(opened, count / 20);
  EXPECT_LT(opened, count);
}

}  // namespace
}  // namespace kinglet::fuzz
