// The containers of checkpoints.
#include <cstring>
#include <string>
#include <vector>

#include "converters/checkpoints/checkpoint_file.h"
#include "converters/checkpoints/npy.h"
#include "converters/checkpoints/pickle.h"
#include "converters/texts/pickled_vocabulary.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/stored_zip.h"
#include "tests/fuzz/targets.h"

namespace kinglet::fuzz {
namespace {

// Reads the values of every tensor that is not large.
void ReadSource(Input bytes) {
  const MemoryFile file(bytes);
  const auto source = OpenCheckpointFile(file.path());
  ExpectOneLine(source.status());
  if (!source.ok()) return;
  for (const CheckpointTensor& tensor : source->tensors) {
    uint64_t entries = 1;
    for (const uint64_t size : tensor.shape) {
      if (__builtin_mul_overflow(entries, size, &entries)) entries = UINT64_MAX;
    }
    if (entries > (uint64_t{1} << 18)) continue;
    if (const auto values = tensor.values(); values.ok()) {
      Expect(values->size() == entries, tensor.name + ": expected as many values as its shape");
    } else {
      ExpectOneLine(values.status());
    }
    if (tensor.integers) ExpectOneLine(tensor.integers().status());
  }
}

bool StartsLike(Input input, std::string_view start) {
  return input.size() >= start.size() && std::memcmp(input.data(), start.data(), start.size()) == 0;
}

}  // namespace

void RunTorchZip(Input input) {
  if (StartsLike(input, "PK")) return ReadSource(input);
  ReadSource(TorchZipOf(input));
}

void RunPickle(Input input) {
  const auto graph = ReadPickle(input, 0);
  ExpectOneLine(graph.status());
  if (graph.ok()) {
    Expect(graph->bytes_read <= input.size(), "expected to read no more than there is");
    const auto tensors = AsStateDict(*graph->root);
    ExpectOneLine(tensors.status());
    (void)graph->root->Describe();
  }
  const MemoryFile file(input);
  ExpectOneLine(ReadPickledVocabulary(file.path()).status());
  ReadSource(input);
}

void RunSafetensors(Input input) {
  ReadSource(input);
  if (!StartsLike(input, "{")) return;
  std::vector<std::byte> file(sizeof(uint64_t) + input.size() + 64);
  const uint64_t size = input.size();
  std::memcpy(file.data(), &size, sizeof size);
  std::memcpy(file.data() + sizeof size, input.data(), input.size());
  ReadSource(file);
}

void RunNumpy(Input input) {
  const auto array = ParseNpy(input);
  ExpectOneLine(array.status());
  ReadSource(input);
  if (!StartsLike(input, "PK")) ReadSource(StoredZip({{"a.npy", input}, {"b.npy", input}}));
}

}  // namespace kinglet::fuzz
