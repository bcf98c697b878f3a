// The targets of the fuzzers of fuzz/: each takes any bytes and either returns or throws Finding.
// Plain ctest replays tests/data/fuzz/NAME through the same functions.
#ifndef KINGLET_TESTS_FUZZ_TARGETS_H_
#define KINGLET_TESTS_FUZZ_TARGETS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include "kinglet/status.h"

namespace kinglet::fuzz {

// A broken promise: what was expected, what was found.
class Finding : public std::logic_error {
  using std::logic_error::logic_error;
};

using Input = std::span<const std::byte>;

struct Target {
  std::string_view name;
  void (*run)(Input input);
  // Makes changed bytes pass the digests, in place. nullptr: bytes are fed unchanged.
  void (*repair)(std::span<std::byte> input);
};

// All targets, in the order of docs/RELIABILITY.md.
std::span<const Target> Targets();
// Returns nullptr for an unknown name.
const Target* FindTarget(std::string_view name);

void RunModelFile(Input input);     // a model file
void RunTorchZip(Input input);      // torch.save's zip format, or a pickle that is put into one
void RunPickle(Input input);        // a pickle, and torch.save's legacy format
void RunSafetensors(Input input);   // the container, or its JSON header alone
void RunNumpy(Input input);         // .npy and .npz
void RunState(Input input);         // the byte that chooses a model, then a state's bytes
void RunRecipe(Input input);        // JSON as a recipe, YAML or JSON as a configuration
void RunTexts(Input input);         // the byte that chooses a reader, then a file's bytes
void RunCalls(Input input);         // calls of the C interface, by two threads
void RunArchive(Input input);       // an archive, as `kinglet decompress` reads it
void RunDifferential(Input input);  // a random model, and tokens for it

// Throws Finding unless `holds`.
void Expect(bool holds, const std::string& what);
// Throws Finding unless a refusal has one line of text without control characters.
void ExpectOneLine(const Status& status);

}  // namespace kinglet::fuzz

#endif  // KINGLET_TESTS_FUZZ_TARGETS_H_
