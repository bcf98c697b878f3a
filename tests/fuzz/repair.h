// Digests of changed files computed again, so that a fuzzer's changes reach the code after the
// digests' checks.
#ifndef KINGLET_TESTS_FUZZ_REPAIR_H_
#define KINGLET_TESTS_FUZZ_REPAIR_H_

#include <cstddef>
#include <span>

namespace kinglet::fuzz {

// Repairs a model file's sizes, segment digests, header digest and frame digest. Bytes that are no
// model file do not change.
void RepairModelFile(std::span<std::byte> file);

// Repairs the model's digest and the checksum of a state, which follow the byte that chooses the
// model.
void RepairState(std::span<std::byte> input);

}  // namespace kinglet::fuzz

#endif  // KINGLET_TESTS_FUZZ_REPAIR_H_
