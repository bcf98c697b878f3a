// Digests of changed files computed again, so that a fuzzer's changes reach what is behind them.
#ifndef KINGLET_TESTS_FUZZ_REPAIR_H_
#define KINGLET_TESTS_FUZZ_REPAIR_H_

#include <cstddef>
#include <span>

namespace kinglet::fuzz {

// A model file's sizes, segment digests, header digest and frame digest. Bytes that are no model
// file at all stay as they are.
void RepairModelFile(std::span<std::byte> file);

// The digest of the model and the checksum of a state, behind the byte that chooses the model.
void RepairState(std::span<std::byte> input);

}  // namespace kinglet::fuzz

#endif  // KINGLET_TESTS_FUZZ_REPAIR_H_
