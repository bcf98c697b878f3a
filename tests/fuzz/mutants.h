// Model files with valid digests and a meaning that no writer gives them: another number in any
// field, another order, number or kind of the parts of lists, another role for a tensor, other
// contents of segments.
#ifndef KINGLET_TESTS_FUZZ_MUTANTS_H_
#define KINGLET_TESTS_FUZZ_MUTANTS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace kinglet::fuzz {

// The model that MakeMutant changes.
std::vector<std::byte> MakeOriginal(uint64_t number);
// A small model of any family, with one to five changes. Equal numbers give equal models.
std::vector<std::byte> MakeMutant(uint64_t number);

// Results of the calls with a file through the C interface.
struct MutantUse {
  bool opened = false;
  double open_seconds = 0, use_seconds = 0;  // of the processor
};
// Opens a file without a memory limit, and with one, on the backends `cpu` and `ref`, and makes
// every kind of call with it. Throws Finding where a call breaks a promise.
MutantUse UseMutant(std::span<const std::byte> file);

}  // namespace kinglet::fuzz

#endif  // KINGLET_TESTS_FUZZ_MUTANTS_H_
