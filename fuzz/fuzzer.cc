// libFuzzer's entry points around one target of tests/fuzz/targets.h: KINGLET_FUZZ_TARGET names it.
#include <cstdio>
#include <cstdlib>

#include "tests/fuzz/targets.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace {

const kinglet::fuzz::Target& FuzzedTarget() {
  static const kinglet::fuzz::Target* const kTarget =
      kinglet::fuzz::FindTarget(KINGLET_FUZZ_TARGET);
  if (kTarget == nullptr) std::abort();
  return *kTarget;
}

#ifdef KINGLET_FUZZ_REPAIRS
// Writes an edge value at a multiple of its width, where fields of the formats are.
void ChangeField(std::byte* data, size_t size, unsigned random) {
  constexpr uint64_t kTelling[] = {0,          1,          2,          0x7F,
                                   0xFF,       0xFFFF,     0x7FFFFFFF, 0x80000000,
                                   0xFFFFFFFF, 0x7F800000, UINT64_MAX, uint64_t{1} << 63};
  const size_t width = size_t{1} << (random % 4);
  if (size < width) return;
  const size_t at = (random >> 2) % (size / width) * width;
  uint64_t value = 0;
  __builtin_memcpy(&value, data + at, width);
  value = random % 3 == 0 ? value + random % 9 - 4
                          : kTelling[(random >> 7) % (sizeof kTelling / sizeof *kTelling)];
  __builtin_memcpy(data + at, &value, width);
}
#endif

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    FuzzedTarget().run(std::as_bytes(std::span(data, size)));
  } catch (const kinglet::fuzz::Finding& finding) {
    std::fprintf(stderr, "finding: %s\n", finding.what());
    std::abort();
  }
  return 0;
}

#ifdef KINGLET_FUZZ_REPAIRS
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned seed) {
  auto* bytes = reinterpret_cast<std::byte*>(data);
  if (seed % 4 == 0 || size == 0) {
    size = LLVMFuzzerMutate(data, size, max_size);
  } else {
    for (unsigned changes = 1 + seed % 3; changes > 0; --changes) {
      seed = seed * 1664525U + 1013904223U;
      ChangeField(bytes, size, seed >> 3);
    }
  }
  if (seed % 16 != 0) FuzzedTarget().repair(std::span(bytes, size));
  return size;
}
#endif
